"""The suites of all kinds, on the methods that come from outside the package."""
import pytest

from graphsane_tf import registry
from graphsane_tf.testing import backbones, clusterings, distillers, logs, peers, replays, runs, samplers

SUITES = {'sampler': samplers.Suite, 'distiller': distillers.Suite, 'backbone': backbones.Suite,
          'replay policy': replays.Suite, 'clustering': clusterings.Suite, 'peer': peers.Suite}

# A class for each kind that there is a method of.
for _kind, _suite in SUITES.items():
  _names = list(registry.REGISTRIES[_kind].own())
  if _names:
    _title = f'Test{_kind.title().replace(" ", "")}'
    globals()[_title] = pytest.mark.parametrize('name', _names)(type(_title, (_suite,), {}))


@pytest.mark.parametrize('kind,name', [
    (kind, name) for kind in runs.CHOICES for name in registry.REGISTRIES[kind].own()])
def test_a_resumed_run_ends_with_the_same_numbers(kind, name, tmp_path):
  runs.check_resumes(runs.config_with(kind, name), logs.growing_log(), tmp_path, own_traces=True)
