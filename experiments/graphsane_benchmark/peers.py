"""Sections of the benchmark against other libraries, which are no dependencies of this package."""
import importlib
import tempfile
from typing import Iterator

import numpy as np
import scipy.sparse
import threadpoolctl

from graphsane_benchmark import training
from graphsane_benchmark.figures import Figure, compare, seconds
from graphsane_tf import parallel
from graphsane_tf.data.interactions import Interactions
from graphsane_tf.evaluation import ranking
from graphsane_tf.training import assembly

_BATCH = 2048
# Seconds in which another library's threads come to rest.
_REST = .5


def peer(name: str):
  """The module, or None where it is not installed."""
  try:
    return importlib.import_module(name)
  except ImportError:
    return None


def lightgcn_config(batch: int):
  """LightGCN as in its paper: 3 layers, d = 64, one negative a pair, the whole graph."""
  return training.config_of(
      kd='none', sampler='uniform', backbone='lightgcn', model__embedding_dim=64, model__num_layers=3,
      train__num_negatives=1, train__num_sampler_negatives=1, train__batch_size=batch, model__propagation='whole')


def lightgcn_section(log: Interactions, repeats: int, batch: int = _BATCH) -> Iterator[Figure]:
  """A step of LightGCN (dense Adam) against PyTorch, and a whole epoch."""
  common = {'section': 'lightgcn', 'shape': log.name, 'target': ('>=', 1.5)}
  name = 'LightGCN step against PyTorch'
  torch = peer('torch')
  if torch is None:
    yield Figure(name=name, note='PyTorch is not installed (pip install torch==2.13.0)', **common)
    return
  with tempfile.TemporaryDirectory() as folder:
    config = lightgcn_config(batch)
    trainer = training.trainer_of(log, 0, config, folder)
    # An epoch is one call: what a call sets up is paid once in it.
    context, count = trainer.context, 20
    ours = training.stepper(trainer.run_steps, len(context.users), batch, count)
    for layout, by_hand in (('csr', True), ('csr', False), ('coo', False)):
      other = _torch_steps(torch, context, batch, count, layout, by_hand)
      what = f'{layout.upper()} matrix' + (', gradient by hand' if by_hand else '')
      yield compare(ours, other, repeats, calls=(count, count), faster=True, rest=_REST,
                    name=f'{name} {torch.__version__} ({what})', **common)
      if by_hand:
        pairs = len(context.users)
        epoch = training.stepper(trainer.run_steps, pairs, batch, -(-pairs // batch))
        yield Figure(name='LightGCN epoch', ours=seconds(epoch), section='lightgcn', shape=log.name,
                     note=f'{pairs:,} pairs, batch {batch:,}, d = 64, 3 layers; published for GPUs: 25 s and 13 s')


def _torch_steps(torch, context, batch: int, count: int, layout: str, by_hand: bool):
  """An action that runs `count` steps of the same model, loss and optimiser.

  Args:
    torch: the module.
    context: the block.
    batch: pairs a step.
    count: steps.
    layout: 'csr' or 'coo', of the matrix.
    by_hand: whether the gradient of a product is written by hand, rather than PyTorch's own.
  """
  torch.set_num_threads(parallel.cores())
  torch.manual_seed(0)
  num_users, num_items = context.num_users, context.num_items
  edges = context.history.matrix()
  adjacency = scipy.sparse.bmat([[None, edges], [edges.T, None]]).tocsr()
  scale = scipy.sparse.diags(1. / np.sqrt(np.maximum(np.diff(adjacency.indptr), 1)))
  adjacency = (scale @ adjacency @ scale).astype(np.float32).tocoo()
  matrix = torch.sparse_coo_tensor(
      np.stack([adjacency.row, adjacency.col]), adjacency.data, adjacency.shape).coalesce()
  if layout == 'csr':
    matrix = matrix.to_sparse_csr()
  table = torch.nn.Parameter(.1 * torch.randn(num_users + num_items, 64))
  optimizer = torch.optim.Adam([table], lr=1e-3)
  users, items = (
      torch.from_numpy(part.astype(np.int64)) for part in (context.users, context.items))

  class Product(torch.autograd.Function):
    """The matrix is symmetric, so its gradient is the same product."""

    @staticmethod
    def forward(_, dense):
      return matrix @ dense

    @staticmethod
    def backward(_, upstream):
      return matrix @ upstream

  def step():
    chosen = torch.randint(len(users), (batch,))
    layers = [table]
    for _ in range(3):
      layers.append(Product.apply(layers[-1]) if by_hand
                    else torch.sparse.mm(matrix, layers[-1]))
    final = torch.stack(layers).mean(dim=0)
    user = final[users[chosen]]
    positive = final[num_users + items[chosen]]
    negative = final[num_users + torch.randint(num_items, (batch,))]
    loss = torch.nn.functional.softplus((user * (negative - positive)).sum(1)).mean()
    loss = loss + .01 * (user.square().sum() + positive.square().sum()
                         + negative.square().sum()) / batch
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

  return lambda: [step() for _ in range(count)]


def implicit_section(log: Interactions, repeats: int, dimension: int = 64) -> Iterator[Figure]:
  """Masked top 20 of all users against `implicit`, on the same random factors."""
  common = {'section': 'implicit', 'shape': log.name, 'target': ('>=', 1.)}
  name = f'users/s ranked against implicit, d = {dimension}'
  implicit = peer('implicit')
  if implicit is None:
    yield Figure(name=name, note='implicit is not installed (pip install implicit)', **common)
    return
  context = assembly.context_of(training.config_of(), log, 0)
  rng = np.random.default_rng(0)
  user_factors, item_factors = (
      rng.normal(size=(number, dimension)).astype(np.float32)
      for number in (context.num_users, context.num_items))
  users, seen = np.arange(context.num_users), context.history.matrix()
  # It asks for that: its threads take a core each.
  with threadpoolctl.threadpool_limits(1, user_api='blas'):
    model = importlib.import_module('implicit.cpu.als').AlternatingLeastSquares(
        factors=dimension, num_threads=parallel.cores())
    model.user_factors, model.item_factors = user_factors, item_factors
    yield compare(
        lambda: ranking.top_k(ranking.DotProduct(user_factors, item_factors), users, context.history, 20),
        lambda: model.recommend(users, seen, N=20, filter_already_liked_items=True), repeats,
        faster=True, rest=_REST, name=name, **common)
