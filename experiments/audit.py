"""Evaluates a finished run under the released protocol's choices, on the same weights.

  python experiments/audit.py --run=runs/drift-sgct-seed0-sampler=sane
"""
import pathlib

from absl import flags

from graphsane_tf import cli, files
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import outputs

_RUN = flags.DEFINE_list('run', None, 'Folders of runs.', required=True)
_DATA_DIR = flags.DEFINE_string('data_dir', 'data', 'Folder of raw files and prepared copies.')


def main():
  cli.load_tensorflow_quietly()
  from graphsane_tf.evaluation import audit  # pylint: disable=g-import-not-at-top
  from graphsane_tf.training import incremental  # pylint: disable=g-import-not-at-top
  for folder in _RUN.value:
    run = incremental.open_run(folder, _DATA_DIR.value)
    results = files.read_object(run.workdir / 'results.json', {'blocks': []})
    blocks = [entry['block'] for entry in results['blocks'] if entry['block'] > 0]
    if not blocks:
      raise UserError(f'{folder} has no finished block after the base block: run it first.')
    found = audit.audit(run, blocks)
    text = outputs.markdown(found, f'Protocol audit of {pathlib.Path(folder).name}, test Recall@20',
                            found['note'])
    files.write_json(run.workdir / 'audit.json', found)
    files.write_text(run.workdir / 'audit.md', text)
    print(text, flush=True)


if __name__ == '__main__':
  cli.run(main)
