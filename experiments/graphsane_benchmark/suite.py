"""The whole benchmark: its sections on the shapes they are meant for."""
import contextlib
import functools
import pathlib
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from graphsane_tf import files
from graphsane_benchmark import (
    catalogues, figures, large, logs, memory, peers, plans, preparation, processes, scoring, serving, training)
from graphsane_tf.data import drift, prepare
from graphsane_tf.data.spec import DataSpec
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import machine

_EDGES = (3_000_000, 6_000_000, 12_000_000)
# Catalogues that are served.
_ITEMS = (10_000, 100_000, 1_000_000)


class Suite:
  """Sections by name; each is a list of jobs that yield figures."""

  def __init__(self, quick: bool, repeats: int, log: Optional[Interactions] = None,
               shapes: Optional[Dict[str, logs.Shape]] = None):
    """Chooses the shapes.

    Args:
      quick: only the Gowalla shape, and nothing that needs minutes.
      repeats: rounds of each comparison.
      log: a real log for the blocks, or None.
      shapes: replaces `logs.SHAPES`, for tests.
    """
    shapes = shapes or logs.SHAPES
    make = functools.lru_cache(maxsize=2)(lambda name: logs.generate(shapes[name]))
    both = ('gowalla',) if quick else ('gowalla', 'taobao14')
    all_three = both if quick else (*both, 'netflix')

    def on(names: Sequence[str], section, **more) -> List[Callable[[], Iterator[figures.Figure]]]:
      more = {'repeats': repeats, **more}
      return [lambda name=name: section(make(name), **more) for name in names]

    # Full retraining takes minutes.
    blocks = [] if quick else [lambda: training.block_section(make('gowalla'), 2, epochs=4)]
    if log is not None:
      blocks.append(lambda: training.block_section(log, 2, epochs=4))
    self.sections = {
        'step': on(both, training.step_section),
        'bare': on(both, training.bare_section, batches=(2048,) if quick else (5000, 2048)),
        'epoch': on(both, training.epoch_section, repeats=min(repeats, 2) if quick else repeats),
        'adaptive': [] if quick else on(both, training.adaptive_section),
        'samplers': [] if quick else on(('gowalla',), training.samplers_section),
        'rebuild': on(all_three, scoring.rebuild_section),
        'evaluation': on(all_three, scoring.evaluation_section),
        'block': blocks,
        'update': [] if quick else [lambda: training.update_section(make('gowalla'), epochs=8)],
        'tracing': [lambda: training.tracing_section(drift.generate(), repeats)],
        # A start takes seconds, and another to prepare the log.
        'startup': [lambda: processes.startup_section(make('gowalla'), 1 if quick else repeats)],
        'lightgcn': on(('lightgcn',), peers.lightgcn_section),
        'implicit': on(('gowalla',) if quick else ('gowalla', 'lightgcn'), peers.implicit_section),
        'serving': [lambda items=items: serving.serving_section(items, repeats)
                    for items in _ITEMS[:1 if quick else None]],
        'sampler_latency': [lambda: serving.sampler_section(drift.generate('small'), repeats)],
        'memory_cost': [lambda shape=shape: memory.cost_section(shape)
                        for shape in memory.SHAPES[:2 if quick else None]],
        'index': [lambda: catalogues.index_section(*[catalogues.ITEMS[:2]] if quick else [])],
        'served_index': [lambda: catalogues.served_section(catalogues.SERVED[:2 if quick else None], repeats=repeats)],
        'plan': [] if quick else [lambda kind=kind: plans.plan_section(kind=kind) for kind in ('sampled', 'whole')],
        'propagation': [] if quick else [plans.propagation_section],
        'large': [] if quick else [large.large_section],
        'preparation': [] if quick else [
            *(lambda rows=rows: preparation.order_section(rows, repeats) for rows in preparation.COMPARED),
            preparation.growth_section],
        'memory': [] if quick else [
            lambda: processes.memory_section(shapes['netflix'], _EDGES)],
    }

  def figures(self, only: Sequence[str], log: Callable[[str], None]) -> List[figures.Figure]:
    """Runs the sections named (all if none) and returns their figures."""
    unknown = sorted(set(only) - set(self.sections))
    if unknown:
      raise UserError(f'--only={",".join(only)}: there is no section {unknown[0]}; choose from '
                      f'{", ".join(self.sections)}.')
    if only and not any(self.sections[name] for name in only):
      raise UserError(f'--only={",".join(only)} has nothing to do with --quick: leave out --quick.')
    found = []
    for name, jobs in self.sections.items():
      for job in jobs if not only or name in only else ():
        for figure in job():
          found.append(figure)
          log('  '.join(figures.row(figure)))
    return found


def run(*, quick: bool, only: Sequence[str] = (), repeats: Optional[int] = None,
        path: Optional[str] = None, log_path: Optional[str] = None, min_interactions: int = 10, processor: bool = False,
        log: Callable[[str], None] = lambda line: print(line, flush=True)) -> Dict[str, Any]:
  """Runs the benchmark, shows the table and writes the figures.

  Args:
    quick: only the Gowalla shape.
    only: names of sections; none is all of them.
    repeats: rounds of each comparison; None is 3 if quick, else 7.
    path: JSON file for the figures, or None.
    log_path: CSV log for the comparison with full retraining, or None.
    min_interactions: fewest interactions of a user, and of an item, in that log.
    processor: whether things timed in turn are compared by processor seconds.
    log: takes a line for the screen.

  Returns:
    What the file holds.
  """
  if path:
    _check_writable(path)
  own = None
  if log_path:
    if not pathlib.Path(log_path).is_file():
      raise UserError(f'--log={log_path} is not a file: give the path of a CSV log.')
    with tempfile.TemporaryDirectory() as folder:
      least = {f'min_{kind}_interactions': min_interactions for kind in ('user', 'item')}
      own = prepare.load(DataSpec('csv', least, {'interactions': log_path}), folder, log=lambda line: None)
  with figures.processor_time() if processor else contextlib.nullcontext():
    found = Suite(quick, repeats or (3 if quick else 7), own).figures(only, log)
  about = machine.describe()
  log('\n' + figures.table(found))
  log('\n' + ', '.join(f'{name} {value}' for name, value in about.items()))
  if processor:
    log('Seconds are those of the processor.')
  result = {'machine': about, 'processor': processor, 'figures': [figure.to_dict() for figure in found]}
  if path:
    files.write_json(pathlib.Path(path), result)
  return result


def _check_writable(path: str) -> None:
  if not pathlib.Path(path).resolve().parent.is_dir():
    raise UserError(f'--json={path}: its folder does not exist.')
  if pathlib.Path(path).is_dir():
    raise UserError(f'--json={path} is a folder: name a file.')
