"""Mutation testing: small faults are planted in the code, one at a time; the tests should notice.

`make mutation` draws a seeded sample of the faults ("mutants") that cosmic-ray's operators can plant in
each package, plants each in a copy of the tree, and runs the tests chosen for its file until one fails.
TensorFlow is imported once; every mutant is tested in a fork of that process, which has used it for
nothing else. Results are written as they come, and a run that was cut off goes on.
"""
import argparse
import collections
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from typing import Dict, Iterator, List, Tuple

import pytest

from tests import mutation_tests

# What is mutated, below graphsane_tf.
_PACKAGES = {
    'training': ['training', 'graph/scores.py'],
    'stores': [f'runs/{name}.py' for name in ('attempt', 'gate', 'store', 'updating')], 'runs': ['runs'],
    'negatives': ['negatives', 'graph/draws.py'], 'distillation': ['distillation'],
    'clustering': ['clustering'], 'evaluation': ['evaluation', 'graph/topk.py', 'reporting/audit.py'],
    'blocks': ['blocks/stream.py', 'blocks/context.py', 'blocks/batch.py'],
    'memory': ['memory'], 'peers': ['peers'], 'replay': ['replay'], 'serving': ['serving']}
# Runs on several devices only, which slow tests have.
_LEFT_OUT = ('training/strategies.py', 'training/servers.py')

# Replacements that somebody might mistype. cosmic-ray has eleven for each arithmetic operator; most raise
# an error wherever they are planted, which would flatter the score.
_BINARY = {'Add': 'Sub Mul', 'Sub': 'Add Mul', 'Mul': 'Div Add', 'Div': 'Mul FloorDiv',
           'FloorDiv': 'Div Mul', 'Mod': 'FloorDiv', 'Pow': 'Mul', 'BitOr': 'BitAnd',
           'BitAnd': 'BitOr', 'LShift': 'RShift', 'RShift': 'LShift'}
_COMPARISON = {'Eq': 'NotEq', 'NotEq': 'Eq', 'Lt': 'LtE GtE', 'LtE': 'Lt Gt', 'Gt': 'GtE LtE',
               'GtE': 'Gt Lt', 'Is': 'IsNot', 'IsNot': 'Is'}
_OTHER = ('ReplaceUnaryOperator_Delete_USub', 'ReplaceUnaryOperator_Delete_Invert',
          'ReplaceUnaryOperator_Delete_Not', 'AddNot', 'ReplaceTrueWithFalse',
          'ReplaceFalseWithTrue', 'ReplaceAndWithOr', 'ReplaceOrWithAnd', 'ReplaceBreakWithContinue',
          'ReplaceContinueWithBreak', 'ExceptionReplacer', 'NumberReplacer', 'RemoveDecorator',
          'ZeroIterationForLoop')
# Nodes in which an arithmetic sign is an operator between two values.
_EXPRESSIONS = ('arith_expr', 'term', 'power', 'shift_expr', 'and_expr', 'expr')
_MEMORY = 12 << 30
# Seconds of processor time that a test may take, and seconds by the clock for all tests of a fault.
_LIMIT = 40.
_PATIENCE = 3600.


@dataclasses.dataclass(frozen=True)
class Mutant:
  """One fault that can be planted.

  Attributes:
    package: which of `_PACKAGES` it is in.
    path: its file.
    version: hash of the file without the fault.
    operator: cosmic-ray's name of the fault, and `occurrence`, which of them in the file.
    line: where it is, from 1.
  """
  package: str
  path: str
  version: str
  operator: str
  occurrence: int
  line: int

  @property
  def key(self) -> str:
    return f'{self.path}:{self.version}:{self.operator}:{self.occurrence}'


def _operators() -> List[str]:
  pairs = [('Binary', _BINARY), ('Comparison', _COMPARISON)]
  return [f'Replace{kind}Operator_{old}_{new}' for kind, table in pairs
          for old, others in table.items() for new in others.split()] + list(_OTHER)


def _ancestors(node) -> Iterator:
  while node is not None:
    yield node
    node = node.parent


def _is_annotation(node) -> bool:
  """Whether a node of the syntax tree is the type of a variable, an argument or a result."""
  parent = node.parent
  if parent is None or parent.type not in ('annassign', 'tfpdef', 'funcdef'):
    return False
  return node is {'annassign': lambda: parent.children[1], 'tfpdef': lambda: parent.children[2],
                  'funcdef': lambda: parent.annotation}[parent.type]()


def _is_left_out(operator: str, node) -> bool:
  """Whether a fault at a node of the syntax tree would change nothing that a program does."""
  if operator.startswith('ReplaceBinaryOperator') and node.parent.type not in _EXPRESSIONS:
    return True
  if operator == 'RemoveDecorator':
    # Only tells authors of subclasses what they have forgotten.
    return 'abstractmethod' in node.get_code()
  above = list(_ancestors(node))
  if any(each.type == 'fstring' or _is_annotation(each) for each in above):
    return True
  # Lines for the screen.
  calls = (each for each in above if each.type in ('power', 'atom_expr'))
  return any(each.get_code().strip().startswith(('self._log(', 'log(')) for each in calls)


def mutants(root: pathlib.Path) -> List[Mutant]:
  """All mutants of all packages below `root`, in a fixed order."""
  from cosmic_ray import ast, plugins  # pylint: disable=g-import-not-at-top
  found, done = [], set()
  for package, places in _PACKAGES.items():
    paths = [path for place in places for path in (
        [root / 'graphsane_tf' / place] if place.endswith('.py')
        else sorted((root / 'graphsane_tf' / place).rglob('*.py')))
        if path.relative_to(root / 'graphsane_tf').as_posix() not in _LEFT_OUT]
    # A file that is named belongs to that package, not to that of its folder.
    paths = [path for path in paths if path not in done]
    done.update(paths)
    for path in paths:
      code = path.read_text()
      tree, version = ast.get_ast(code), hashlib.sha1(code.encode()).hexdigest()[:10]
      for name in _operators():
        operator = plugins.get_operator(f'core/{name}')()
        positions = ((node, start) for node in ast.ast_nodes(tree)
                     for start, _ in operator.mutation_positions(node))
        for occurrence, (node, start) in enumerate(positions):
          if not _is_left_out(name, node):
            found.append(Mutant(package, str(path.relative_to(root)), version, name, occurrence,
                                start[0]))
  return found


def mutated(code: str, mutant: Mutant) -> str:
  """The file's text with the fault in it."""
  from cosmic_ray import mutating, plugins  # pylint: disable=g-import-not-at-top
  return mutating.mutate_code(code, plugins.get_operator(f'core/{mutant.operator}')(),
                              mutant.occurrence)


def sample(everything: List[Mutant], size: int, seed: int) -> List[Mutant]:
  """`size` mutants of each package, from its files in proportion to their mutants, in random order.

  A file's mutants are drawn with a seed of its own: a change of one file changes no other file's sample,
  apart from its size.
  """
  chosen = []
  for package in _PACKAGES:
    files = collections.defaultdict(list)
    for mutant in everything:
      if mutant.package == package:
        files[mutant.path].append(mutant)
    total = sum(map(len, files.values()))
    wanted = min(size, total)
    # Largest remainders, so that the parts add up.
    exact = {path: wanted * len(found) / total for path, found in files.items()}
    counts = {path: int(value) for path, value in exact.items()}
    rest = sorted(files, key=lambda path: counts[path] - exact[path])
    for path in rest[:wanted - sum(counts.values())]:
      counts[path] += 1
    for path, found in files.items():
      # A larger sample has the smaller one's mutants and more.
      random.Random(f'{seed}:{path}').shuffle(found)
      chosen += found[:counts[path]]
  random.Random(seed).shuffle(chosen)
  return chosen


def wilson(successes: int, trials: int, z: float = 1.96) -> Tuple[float, float]:
  """The 95 % Wilson interval of a share."""
  if not trials:
    return 0., 1.
  share, square = successes / trials, z * z / trials
  middle = (share + square / 2) / (1 + square)
  half = z * math.sqrt(share * (1 - share) / trials + square / (4 * trials)) / (1 + square)
  return middle - half, middle + half


class Results:
  """What happened to each mutant, in a file with a line for each; the last line about one counts."""

  def __init__(self, folder: pathlib.Path):
    self._path = folder / 'results.jsonl'
    self.known: Dict[str, Dict] = {}
    if self._path.exists():
      for line in self._path.read_text().splitlines():
        entry = json.loads(line)
        self.known[entry['key']] = entry

  def killers(self, path: str) -> List[str]:
    """Names of the tests that have noticed faults in a file, the most frequent one first."""
    return [name for name, _ in collections.Counter(
        entry['failed'] for entry in self.known.values()
        if entry['outcome'] == 'killed' and entry.get('path') == path).most_common()]

  def add(self, key: str, **entry) -> None:
    self.known[key] = {'key': key, **entry}
    with open(self._path, 'a') as file:
      file.write(json.dumps(self.known[key]) + '\n')
      file.flush()
      os.fsync(file.fileno())


class _Watch:
  """A plugin for pytest: tests that are likely to fail first, each with a limit, and which one failed."""

  def __init__(self, tests: List[str], first: List[str], failed: pathlib.Path):
    self._paths = [os.path.abspath(test.split('::')[0]) for test in tests]
    self._first = {name: place for place, name in enumerate(first)}
    self._failed = failed

  def _place(self, path) -> int:
    return next((k for k, place in enumerate(self._paths) if str(path).startswith(place)), 0)

  @pytest.hookimpl(trylast=True)
  def pytest_collection_modifyitems(self, items):
    """Whatever conftest.py wants."""
    items.sort(key=lambda item: (self._first.get(item.nodeid, len(self._first)), self._place(item.path)))

  def pytest_runtest_logstart(self):
    # Seconds of this process, so that it does not matter what else the machine does; its end is SIGPROF.
    signal.setitimer(signal.ITIMER_PROF, _LIMIT)

  def _note(self, report):
    if report.failed:
      self._failed.write_text(report.nodeid)

  pytest_runtest_logreport = pytest_collectreport = _note


class Server:
  """Runs tests in forks of a process that has imported TensorFlow and never called it."""

  def __init__(self, folder: pathlib.Path):
    self._output, self._failed = folder / 'output.txt', folder / 'failed.txt'
    # pylint: disable=g-import-not-at-top,unused-import
    import graphsane_tf
    import optuna
    import pandas
    import scipy.optimize
    import scipy.stats
    import sklearn.cluster
    import sklearn.isotonic
    import tensorflow
    import tf_keras
    sys.dont_write_bytecode = True

  def run(self, tests: List[str], keyword: str, first: List[str] = ()) -> Tuple[str, float, str]:
    """Runs tests until one fails.

    Args:
      tests: files, folders or pytest's names of tests, in the order in which they are run.
      keyword: what is run of them (pytest's -k); '' is everything.
      first: pytest's names of those of them that are run before the others.

    Returns:
      'killed', 'survived' or 'timeout', the seconds, and pytest's name of what failed.
    """
    started = time.monotonic()
    self._failed.unlink(missing_ok=True)
    child = os.fork()
    if not child:
      self._test(tests, keyword, first)
    while True:
      pid, status = os.waitpid(child, os.WNOHANG)
      seconds = time.monotonic() - started
      if pid:
        code = os.waitstatus_to_exitcode(status)
        break
      if seconds > _PATIENCE:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return 'timeout', seconds, ''
      time.sleep(.05)
    if code == -signal.SIGPROF:
      return 'timeout', seconds, ''
    # 5: nothing of the file is selected by the keyword.
    if code in (0, 5):
      return 'survived', seconds, ''
    # Without a name the process has died, or pytest has: the first tests must have done it.
    return 'killed', seconds, self._failed.read_text() if self._failed.exists() else tests[0]

  def _test(self, tests, keyword, first):
    """The child's life."""
    code = 9
    try:
      os.setsid()
      with open(self._output, 'w') as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
      resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
      signal.setitimer(signal.ITIMER_PROF, _LIMIT)
      code = pytest.main(
          ['-q', '-x', '--tb=line', '-o', 'addopts=', '-p', 'no:cacheprovider', '-m', 'not slow', '-k',
           keyword, *tests], plugins=[_Watch(tests, list(first), self._failed)])
    finally:
      os._exit(int(code))


def _copy(root: pathlib.Path, target: pathlib.Path) -> None:
  """A copy of the tree in which faults can be planted."""
  shutil.rmtree(target, ignore_errors=True)
  ignored = shutil.ignore_patterns('.*', '__pycache__', '*.egg-info', 'data', 'runs', 'build', 'dist')
  shutil.copytree(root, target, ignore=lambda folder, names: (
      ignored(folder, names) if pathlib.Path(folder) == root else {'__pycache__'} & set(names)))


def _check(server: Server, results: Results, chosen: List[Mutant]) -> None:
  """Ends the program if a test that has noticed a fault fails without one, too."""
  found = [results.known[m.key] for m in chosen if m.key in results.known]
  names = sorted({entry['failed'] for entry in found if entry['outcome'] == 'killed'
                  and f'without a fault: {entry["failed"]}' not in results.known})
  if names:
    outcome, _, failed = server.run(names, '')
    if outcome != 'survived':
      raise SystemExit(f'error: {failed or "a test"} fails without any fault.')
    for name in names:
      results.add(f'without a fault: {name}', outcome=outcome)


def run(chosen: List[Mutant], folder: pathlib.Path, again: bool, long: bool) -> None:
  """Tests the mutants that have no result yet, or (`again`) none but 'survived', in a copy of the tree."""
  server, results = Server(folder), Results(folder)
  todo = [m for m in chosen if m.key not in results.known
          or (again and results.known[m.key]['outcome'] != 'killed')]
  for number, mutant in enumerate(todo):
    path = pathlib.Path(mutant.path)
    tests, keyword = mutation_tests.tests_of(mutant.path, long=long)
    code = path.read_text()
    planted = mutated(code, mutant)
    try:
      path.write_text(planted)
      outcome, seconds, failed = server.run(tests, keyword, results.killers(mutant.path))
    finally:
      path.write_text(code)
    lines = zip(code.splitlines(), planted.splitlines())
    change = next(((old, new) for old, new in lines if old != new), ('', ''))
    results.add(mutant.key, outcome=outcome, seconds=round(seconds, 1), failed=failed,
                package=mutant.package, path=mutant.path, line=mutant.line,
                change=[part.strip() for part in change])
    print(f'{number + 1}/{len(todo)}  {outcome:8}  {seconds:5.1f} s  {mutant.path}:{mutant.line}  '
          f'{mutant.operator}', flush=True)
  _check(server, results, chosen)


def report(everything: List[Mutant], chosen: List[Mutant], folder: pathlib.Path) -> str:
  """The score by package and the survivors of a sample."""
  known = Results(folder).known
  lines = ['| package | mutants | sampled | killed | timeouts | survived | score | 95 % interval |',
           '|---|---|---|---|---|---|---|---|']
  weighted, done = 0., [m for m in chosen if m.key in known]
  for package in (*_PACKAGES, 'all'):
    inside = lambda m, package=package: package in ('all', m.package)
    found = collections.Counter(known[m.key]['outcome'] for m in done if inside(m))
    number, size = sum(found.values()), sum(map(inside, everything))
    if not size:
      continue
    caught = number - found['survived']
    low, high = wilson(caught, number)
    weighted += size * caught / max(number, 1) if package != 'all' else 0.
    lines.append(
        f'| {package} | {size} | {number} | {found["killed"]} | {found["timeout"]} | '
        f'{found["survived"]} | {100 * caught / max(number, 1):.1f} % | '
        f'{100 * low:.1f} to {100 * high:.1f} % |')
  lines.append(f'\nWeighted by the packages\' mutants: {100 * weighted / len(everything):.1f} %.')
  if len(done) < len(chosen):
    lines.append(f'{len(chosen) - len(done)} of the sample are still to be tested.')
  for mutant in sorted(done, key=lambda m: (m.path, m.line)):
    entry = known[mutant.key]
    if entry['outcome'] != 'killed':
      lines.append(f'\n{entry["outcome"]}: {mutant.path}:{mutant.line} {mutant.operator}\n'
                   f'  - {entry["change"][0]}\n  + {entry["change"][1]}')
  return '\n'.join(lines)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--sample', type=int, default=60, help='mutants of each package')
  parser.add_argument('--seed', type=int, default=1, help='of the sample')
  parser.add_argument('--packages', default=','.join(_PACKAGES), help='which of them, with commas')
  parser.add_argument('--only', default='', help='only files whose path contains this')
  parser.add_argument('--again', action='store_true', help='test survivors and timeouts once more')
  parser.add_argument('--long', action='store_true', help='with tests that are whole runs, too')
  parser.add_argument('--report', action='store_true', help='only show the results so far')
  parser.add_argument('--folder', default='.mutation', help='where results and the copy are')
  parser.add_argument('--inside', action='store_true', help=argparse.SUPPRESS)
  options = parser.parse_args()
  folder, root = pathlib.Path(options.folder).resolve(), pathlib.Path.cwd()
  everything = [m for m in mutants(root) if m.package in options.packages.split(',')]
  chosen = [m for m in sample(everything, options.sample, options.seed) if options.only in m.path]
  if options.inside:
    run(chosen, folder, options.again, options.long)
    return
  folder.mkdir(exist_ok=True)
  if not options.report:
    _copy(root, folder / 'tree')
    subprocess.run(
        [sys.executable, '-m', 'tests.mutation', '--inside', *sys.argv[1:], f'--folder={folder}'],
        cwd=folder / 'tree', check=True,
        env={**os.environ, 'PYTHONPATH': str(folder / 'tree'), 'PYTHONDONTWRITEBYTECODE': '1'})
  print(report(everything, chosen, folder))


if __name__ == '__main__':
  main()
