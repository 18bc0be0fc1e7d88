"""Large catalogues: rankings by an approximate index against exact ones, and from which size on the index pays."""
import math
import tempfile
import time
from typing import Iterator, List, Sequence, Tuple

import numpy as np
import tensorflow as tf

from graphsane_benchmark.figures import Figure, of_rounds
from graphsane_tf.evaluation import approximate, ranking
from graphsane_tf.graph import csr
from graphsane_tf.random import host_generator
from graphsane_tf.serving import approximate as serving
from graphsane_tf.serving import export

ITEMS = (30_000, 100_000, 300_000, 1_000_000)
SERVED = (10_000, 100_000, 1_000_000)
_DIMENSION, _GROUPS, _SEEN, _DEPTH = 64, 300, 50, 300
# Users ranked exactly, whose time is taken for all of them: each takes as long as any other.
_EXACT_USERS = 512


def _vectors(number: int, name: str, centres: np.ndarray) -> np.ndarray:
  """[number, d] vectors in groups, of different lengths, as trained ones are."""
  rng = host_generator(number, name=name)
  vectors = .8 * centres[rng.integers(len(centres), size=number)]
  vectors += rng.standard_normal(vectors.shape, np.float32)
  return vectors * rng.lognormal(0, .3, (number, 1)).astype(np.float32)


def index_section(items: Sequence[int] = ITEMS, users: int = 10_000) -> Iterator[Figure]:
  """Reservoir rankings of some users, the index built for them, by size of the catalogue.

  Seconds are of all cores together: both sides use all of them, and what else runs on the machine does not count.
  """
  centres = host_generator(0, name='centres').standard_normal((_GROUPS, _DIMENSION), np.float32)
  ratios: List[Tuple[int, float]] = []
  for number in items:
    scorer = ranking.DotProduct(_vectors(users, 'users', centres), _vectors(number, 'items', centres))
    everyone, stretch = np.arange(users), number // _SEEN
    rng = host_generator(number, name='seen')
    seen = csr.Csr(np.arange(users + 1) * _SEEN, (rng.integers(stretch, size=(users, _SEEN)) + np.arange(_SEEN)
                                                  * stretch).ravel().astype(np.int32), number)
    part = everyone[:_EXACT_USERS]
    started = time.process_time()
    exact, _ = ranking.top_k(scorer, part, seen, _DEPTH)
    other = (time.process_time() - started) * users / len(part)
    started = time.process_time()
    index = approximate.Index(scorer, everyone, seen, _DEPTH)
    built = time.process_time() - started
    found, _ = index.top_k(everyone)
    ours = time.process_time() - started
    ratios.append((number, ours / other))
    yield Figure(
        section='index', name='ranking by an index, built for it, against exact', shape=f'{number:,} items',
        ours=ours, other=other, ratio=ours / other,
        note=f'{number:,} items, processor seconds: ranks 1 to {_DEPTH} of {users:,} users, d = {_DIMENSION}; '
             f'{approximate.recall(found[:len(part)], exact):.3f} of the exact lists found with {index.probes} centres '
             f'of {int(number ** .5)}; building took {built:.3g} s of it; exact from {len(part)} users')
  yield Figure(section='index', name='catalogue from which the index is faster', shape=f'{users:,} users', unit='items',
               ours=crossover(ratios), note='between the sizes measured, on a line through logarithms')


def served_section(items: Sequence[int] = SERVED, users: int = 2_000, repeats: int = 3) -> Iterator[Figure]:
  """A list of 10 for one user from a SavedModel, by an index of what it serves, by size of the catalogue."""
  centres = host_generator(0, name='centres').standard_normal((_GROUPS, _DIMENSION), np.float32)
  ratios: List[Tuple[int, float]] = []
  for number in items:
    seen = csr.Csr(np.zeros(users + 1, np.int64), np.zeros(0, np.int32), number)
    with tempfile.TemporaryDirectory() as folder:
      export.export_block(folder, _vectors(users, 'users', centres), _vectors(number, 'items', centres),
                          list(map(str, range(users))), list(map(str, range(number))), seen, np.ones(number))
      started = time.perf_counter()
      served = serving.Indexed(tf.saved_model.load(folder))
      built = time.perf_counter() - started
    figure = of_rounds(
        [served.times() for _ in range(repeats)], section='served_index',
        name='SavedModel by an index against exact, one user',
        shape=f'{number:,} items', note=(
            f'{number:,} items, d = {_DIMENSION}: {served.index.recall:.3f} of the exact lists of '
            f'{served.index.length} with {served.index.probes} centres of {served.index.centres}; loaded and built in '
            f'{built:.3g} s'))
    ratios.append((number, figure.ratio or 0.))
    yield figure
  yield Figure(section='served_index', name='catalogue from which serving by the index is faster', shape='one user',
               unit='items', ours=crossover(ratios), note='between the sizes measured, on a line through logarithms')


def crossover(ratios: Sequence[Tuple[int, float]]) -> float:
  """The size from which on a ratio, given at ascending sizes, is at most 1; the first or last if it is beyond them."""
  for (small, above), (large, below) in reversed(list(zip(ratios, ratios[1:]))):
    if above > 1 >= below:
      share = math.log(above) / (math.log(above) - math.log(below))
      return small * (large / small) ** share
  return float(ratios[0][0] if ratios[-1][1] <= 1 else ratios[-1][0])
