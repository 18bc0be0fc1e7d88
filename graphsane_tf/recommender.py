"""A recommender that is kept up to date, with raw ids only; docs/updating.md has a complete example.

    from graphsane_tf.recommender import Recommender

    shop = Recommender.create('shop', 'history.parquet', kd='sgct', sampler='sane')
    shop.update('today.csv')
    shop.recommend('u00012', k=10)
"""
import contextlib
import io
import pathlib
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

from graphsane_tf import config as config_lib
from graphsane_tf import files
from graphsane_tf.data.readers import csv
from graphsane_tf.errors import UserError
from graphsane_tf.runs import store as stores
from graphsane_tf.runs import updating
from graphsane_tf.runs.updating import Outcome
from graphsane_tf.serving import approximate, export, models

Rows = Union[str, pathlib.Path, pd.DataFrame]
FORMATS = ('npz', 'parquet')


class Recommender:
  """A store, opened. Users and items are called by the ids of the log, as text.

  Attributes:
    store: the folder's `Store`.
  """

  def __init__(self, store: stores.Store, say: Callable[[str], None] = lambda line: None, ranking: str = 'exact'):
    """Use `create` or `open`."""
    approximate.check(ranking)
    self.store = store
    self._say = say
    self._ranking = ranking
    self._served: Optional[models.Served] = None

  @classmethod
  def create(cls, path, interactions: Rows, config=None, *, name: str = 'recommender',
             columns: Optional[Dict[str, str]] = None, say: Callable[[str], None] = lambda line: None,
             settings: Optional[stores.Settings] = None, **changes) -> 'Recommender':
    """Makes a store from a history; the same call again goes on where it was cut off.

    Args:
      path: a new folder.
      interactions: a file as `--interactions` takes it, or a data frame with columns user, item and timestamp.
      config: a configuration; the default one if None.
      name: of the model, in the paths of TensorFlow Serving.
      columns: names of the columns that are not called user, item, timestamp, category and rating.
      say: takes a line about the progress.
      settings: margin, holdout and the like.
      **changes: fields of the configuration by the names of their short flags, e.g. kd='sgct', epochs=5.
    """
    config = config or config_lib.default_config()
    for flag, value in changes.items():
      if flag not in config_lib.SHORT_FLAGS:
        raise UserError(f'{flag} is no short name of a field: choose from {", ".join(config_lib.SHORT_FLAGS)}, or '
                        'change the configuration.')
      config.update_from_flattened_dict({config_lib.SHORT_FLAGS[flag]: value})
    with _file(interactions) as file:
      updating.create(path, file, config, name=name, columns=csv.Columns(**columns or {}),
                      settings=settings or stores.Settings(), say=say)
    return cls(stores.Store(path), say)

  @classmethod
  def open(cls, path, say: Callable[[str], None] = lambda line: None, ranking: str = 'exact') -> 'Recommender':
    """Opens a store that is there; `ranking` is 'exact', or 'approximate' by an index, for large catalogues."""
    return cls(stores.Store(path), say, ranking)

  @property
  def version(self) -> int:
    """The version that is served."""
    return self.store.manifest()['number']

  def update(self, interactions: Optional[Rows] = None, *, forget_users: Sequence[str] = (),
             forget_items: Sequence[str] = (), margin: Optional[float] = None,
             publish: Optional[str] = None) -> Outcome:
    """Brings the store up to date; see `Outcome` for what comes of it. See `updating.update` for the arguments."""
    with _file(interactions) as file:
      return updating.update(self.store, file, forget_users=forget_users, forget_items=forget_items, margin=margin,
                             publish=publish, say=self._say)

  def recommend(self, user: Union[str, Sequence[str]], k: int = 10) -> List[Any]:
    """The best items for a user that they have not taken: [(item, score), ...]; for several users, a list of lists.

    Somebody whom the model does not know gets what is popular.
    """
    users = [user] if isinstance(user, str) else list(user)
    answer = export.read_answer(self._model().ask('serving_default', {
        'user_id': tf.constant(users, tf.string, [len(users)]), 'k': tf.constant(k, tf.int32)}))
    return answer[0] if isinstance(user, str) else answer

  def knows(self, user: str) -> bool:
    """Whether the version that is served has been trained on rows of a user."""
    ids = self.store.log().interactions.user_ids
    place = np.flatnonzero(ids == user)
    return bool(len(place)) and int(place[0]) < self.store.manifest()['data']['users']

  def similar_items(self, item: str, k: int = 10) -> List[Tuple[str, float]]:
    """The items whose vectors point most nearly in the same direction: [(item, cosine), ...]."""
    ids = self.store.log().interactions.item_ids
    vectors = self.store.scorer().item_vectors
    place = np.flatnonzero(ids[:len(vectors)] == item)
    if not len(place):
      raise UserError(f'the model does not know the item {item!r}.')
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosine = unit @ unit[place[0]]
    cosine[place[0]] = -np.inf
    best = np.argsort(-cosine, kind='stable')[:min(k, len(cosine) - 1)]
    return [(str(ids[number]), float(cosine[number])) for number in best]

  def rollback(self, version: int) -> int:
    """Publishes an older version again; returns its new number."""
    return updating.rollback(self.store, version)

  def export(self, path, kind: str = 'npz', version: Optional[int] = None) -> List[pathlib.Path]:
    """Writes vectors and ids for other software to rank with: a score is the dot product of two vectors.

    What a memory's item-item weights add is in no vector, and is said to be missing.

    Args:
      path: the file for 'npz' (user_id, user_vector, item_id, item_vector), a folder for 'parquet' (users.parquet and
        items.parquet with columns id and vector).
      kind: 'npz' or 'parquet'.
      version: None is the one that is served.

    Returns:
      The files written.
    """
    if kind not in FORMATS:
      raise UserError(f'--format={kind}: choose from {", ".join(FORMATS)}.')
    scorer = self.store.scorer(version)
    if getattr(scorer, 'profile', None) is not None:
      self._say('warning: this version ranks by vectors and a memory of what is taken together, and the latter is in '
                'no vector: dot products alone give other lists than graphsane recommend and serve.')
    log = self.store.log().interactions
    sides = {'user': (log.user_ids[:scorer.num_users], scorer.user_vectors),
             'item': (log.item_ids[:scorer.num_items], scorer.item_vectors)}
    path = pathlib.Path(path)
    if kind == 'npz':
      arrays: Dict[str, Any] = {}
      for side, (ids, vectors) in sides.items():
        arrays[f'{side}_id'], arrays[f'{side}_vector'] = ids.astype(str), vectors
      target = path if path.suffix == '.npz' else path.with_name(f'{path.name}.npz')
      data = io.BytesIO()
      np.savez(data, **arrays)
      files.write_bytes(target, data.getvalue())
      return [target]
    targets = []
    for side, (ids, vectors) in sides.items():
      column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
      data = io.BytesIO()
      pq.write_table(pa.table({'id': pa.array(ids, pa.string()), 'vector': column}), data)
      targets.append(path / f'{side}s.parquet')
      files.write_bytes(targets[-1], data.getvalue())
    return targets

  def _model(self) -> models.Served:
    """The version that is served, loaded once."""
    number = self.version
    while self._served is None or self._served.number != number:
      path = self.store.versions.path(number)
      try:
        self._served = models.Served(number, path, self._ranking, self._say)
      except (tf.errors.OpError, OSError) as error:
        # A newer version may have come, and this one have been deleted meanwhile.
        if self.version == number:
          raise UserError(f'{path} cannot be loaded ({files.reason(error)}): publish another version with graphsane '
                          'rollback --to=N.') from error
        number = self.version
    return self._served


@contextlib.contextmanager
def _file(interactions: Optional[Rows]) -> Iterator[Optional[Any]]:
  """A file with the rows: the one that was given, or a data frame's."""
  if not isinstance(interactions, pd.DataFrame):
    yield interactions
    return
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'rows.parquet'
    interactions.to_parquet(path, index=False)
    yield path
