"""The forecast of `graphsane plan` against steps of logs that its costs were not measured on."""
from typing import Iterator

from graphsane_benchmark import training
from graphsane_benchmark.figures import Figure
from graphsane_tf.runs import forecast

# Users, items and rows: more of each than where costs are measured, alone and together.
LOGS = ((40_000, 8_000, 150_000), (6_000, 5_600, 480_000), (60_000, 40_000, 600_000))


def plan_section(backbone: str = 'lightgcn', kind: str = 'sampled', logs=LOGS, **changes) -> Iterator[Figure]:
  """Seconds of a step: forecast and measured."""
  config = training.config_of(kd='none', sampler='uniform', backbone=backbone, model__propagation=kind,
                              model__embedding_dim=64, **changes)
  costs = forecast.measure(config)
  for users, items, rows in logs:
    shape, measured = forecast.step_seconds(config, forecast.random_log(users, items, rows))
    expected = forecast.forecast(config, shape, costs, 1.)[0]['step']
    yield Figure(section='plan', name=f'forecast of a step of {backbone}, {kind}, against measured',
                 shape=f'{users:,} users, {items:,} items, {rows:,} rows', ours=expected, other=measured,
                 ratio=max(expected / measured, measured / expected), target=('<=', 1.3),
                 note='the larger over the smaller')
