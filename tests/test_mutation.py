"""The mutation tool: which faults it plants, how it samples, and what it reports."""
import collections
import json
import pathlib

import pytest

from tests import mutation, mutation_tests

_ROOT = pathlib.Path(__file__).resolve().parents[1]


def _mutant(package, path, number):
  return mutation.Mutant(package, path, 'v', 'AddNot', number, number)


def test_wilson_interval_by_hand():
  """Wilson's (1927) interval of 81 in 263, as in Newcombe (1998): .2553 to .3662."""
  assert mutation.wilson(81, 263) == pytest.approx((.2553, .3662), abs=1e-4)
  assert mutation.wilson(0, 20) == pytest.approx((0., .1611), abs=1e-4)
  assert mutation.wilson(0, 0) == (0., 1.)


def test_a_sample_has_each_file_in_proportion():
  everything = [_mutant('training', path, k) for path, count in (('a', 50), ('b', 30), ('c', 21))
                for k in range(count)]
  everything += [_mutant('clustering', 'd', k) for k in range(4)]
  chosen = mutation.sample(everything, 10, 1)
  assert len(set(chosen)) == 14
  assert collections.Counter(m.path for m in chosen) == {'a': 5, 'b': 3, 'c': 2, 'd': 4}
  assert mutation.sample(everything, 10, 1) == chosen != mutation.sample(everything, 10, 2)
  # Another file that grows changes nothing here, as long as the numbers stay.
  more = everything + [_mutant('clustering', 'e', k) for k in range(9)]
  again = [m for m in mutation.sample(more, 10, 1) if m.package == 'training']
  assert set(again) == {m for m in chosen if m.package == 'training'}


def test_every_file_has_tests_that_exist():
  pytest.importorskip('cosmic_ray')
  found = {mutant.path for mutant in mutation.mutants(_ROOT)}
  assert len(found) > 40
  for path in found:
    tests, _ = mutation_tests.tests_of(path, long=True)
    assert tests and all((_ROOT / test.split('::')[0]).exists() for test in tests), path


def test_faults_are_planted_in_code_only(tmp_path, monkeypatch):
  pytest.importorskip('cosmic_ray')
  path = tmp_path / 'graphsane_tf' / 'training' / 'some.py'
  path.parent.mkdir(parents=True)
  monkeypatch.setattr(mutation, '_PACKAGES', {'training': ['training']})
  path.write_text('''"""Text: 1 + 1."""
import abc
X: int | None = 3
class A(abc.ABC):
  @abc.abstractmethod
  def f(self, a: 'x < y', *, b=(1, 2)) -> 1:
    """2 > 1"""
    self._log(f'{a + 1}', a - 5)
    return {**b, 'k': f'{a * 2}'}
  @property
  def g(self):
    return 7 - self.x
''')
  found = mutation.mutants(tmp_path)
  # Two faults a number: one more and one less.
  assert collections.Counter((m.line, m.operator.split('_')[0]) for m in found) == {
      (3, 'NumberReplacer'): 2, (6, 'NumberReplacer'): 4, (10, 'RemoveDecorator'): 1,
      (12, 'NumberReplacer'): 2, (12, 'ReplaceBinaryOperator'): 2}
  sub = [m for m in found if m.operator == 'ReplaceBinaryOperator_Sub_Add']
  assert len(sub) == 1 and '7 + self.x' in mutation.mutated(path.read_text(), sub[0])


def test_report(tmp_path):
  everything = [_mutant('training', 'a', k) for k in range(4)] + [
      _mutant('evaluation', 'b', k) for k in range(12)]
  results = mutation.Results(tmp_path)
  for mutant, outcome in zip(everything, ('killed', 'survived', 'timeout', 'killed', 'survived')):
    results.add(mutant.key, outcome='survived', change=['x', 'y'])
    results.add(mutant.key, outcome=outcome, change=['old', 'new'])
  text = mutation.report(everything, everything[:6], tmp_path)
  assert '| training | 4 | 4 | 2 | 1 | 1 | 75.0 % |' in text
  assert '| all | 16 | 5 | 2 | 1 | 2 | 60.0 % |' in text
  assert 'Weighted by the packages\' mutants: 18.8 %.' in text
  assert '1 of the sample are still to be tested.' in text
  assert 'survived: a:1 AddNot\n  - old\n  + new' in text and 'timeout: a:2' in text
  lines = [json.loads(line) for line in (tmp_path / 'results.jsonl').read_text().splitlines()]
  assert len(lines) == 10
