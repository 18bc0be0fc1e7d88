"""The forecast of `graphsane plan`, and the choice of `model.propagation=auto`, against measured steps."""
import dataclasses
from typing import Iterator, List, Tuple

from graphsane_benchmark import training
from graphsane_benchmark.figures import Figure
from graphsane_tf.runs import forecast
from graphsane_tf.training import propagation

# Users, items and rows: other shapes than those that costs are measured on, the last two with more edges than any.
LOGS = ((6_000, 5_600, 480_000), (8_800, 39_000, 749_000), (30_000, 41_000, 1_350_000))
# What the rule's constants are fitted to: caches and tables of all sizes, low and high degrees.
_SHAPES = ((1_500, 1_200, 30_000), (4_000, 3_000, 240_000), (20_000, 16_000, 80_000), (40_000, 8_000, 150_000),
           (60_000, 40_000, 600_000), (3_000, 30_000, 100_000), *LOGS)
_SMALL = ((300, 400, 14_000), (2_300, 1_900, 140_000))
# Backbone, dimension, pairs of a batch, logs.
CHOICES = (('mgccf', 128, 2048, _SHAPES), ('lightgcn', 64, 2048, _SHAPES), ('mgccf', 16, 512, _SMALL),
           ('lightgcn', 16, 512, _SMALL))


def _config(backbone: str, kind: str, dimension: int, **changes):
  return training.config_of(kd='none', sampler='uniform', backbone=backbone, model__propagation=kind,
                            model__embedding_dim=dimension, **changes)


def _named(log: Tuple[int, int, int]) -> str:
  return '{:,} users, {:,} items, {:,} rows'.format(*log)


def plan_section(backbone: str = 'lightgcn', kind: str = 'sampled', logs=LOGS, **changes) -> Iterator[Figure]:
  """Processor seconds of a step: forecast and measured."""
  config = _config(backbone, kind, 64, **changes)
  costs = dataclasses.replace(forecast.measure(config), cores=1.)
  for log in logs:
    shape, measured, _ = forecast.step_seconds(config, forecast.random_log(*log))
    expected = forecast.forecast(config, shape, costs, 1.)[0]['step']
    yield Figure(section='plan', name=f'forecast of a step of {backbone}, {kind}, against measured', shape=_named(log),
                 ours=expected, other=measured, ratio=max(expected / measured, measured / expected),
                 target=('<=', 1.3), note='processor seconds; the larger over the smaller')


def propagation_section(choices=CHOICES) -> Iterator[Figure]:
  """Processor seconds of a step: as 'auto' chooses, and the other way; then the rule's constants fitted to them."""
  works: List[propagation.Work] = []
  seconds: List[float] = []
  kinds: List[str] = []
  for backbone, dimension, batch, logs in choices:
    for log in logs:
      generated, found = forecast.random_log(*log), {}
      for kind in ('whole', 'sampled'):
        config = _config(backbone, kind, dimension, train__batch_size=batch)
        shape, found[kind], _ = forecast.step_seconds(config, generated)
        works.append(forecast.amounts(config, shape)[1])
        seconds.append(found[kind])
        kinds.append(kind)
      config = _config(backbone, 'auto', dimension, train__batch_size=batch)
      chosen = forecast.amounts(config, shape)[0]
      other = found['sampled' if chosen == 'whole' else 'whole']
      yield Figure(section='propagation', shape=_named(log),
                   name=f'{backbone}, d = {dimension}, batch {batch}: step as auto chooses, against the other way',
                   ours=found[chosen], other=other, ratio=found[chosen] / other,
                   target=('<=', 1.1), note=f'{chosen}; processor seconds')
  for kind in ('whole', 'sampled'):
    units = forecast.fitted(*zip(*((work, time) for work, time, one in zip(works, seconds, kinds) if one == kind)))
    fitted = ', '.join(f'{name} {1e9 * value:.3g}' for name, value in dataclasses.asdict(units).items() if value)
    yield Figure(section='propagation', name=f'what every {kind} step does', shape='all of these', ours=units.step,
                 note=f'all costs, in nanoseconds: {fitted}')
