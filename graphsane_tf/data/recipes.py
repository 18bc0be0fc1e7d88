"""What each data set is: where its owner keeps it, how it is filtered, what the paper counted."""
import dataclasses
import hashlib
import json
from typing import Any, Mapping, Optional

from graphsane_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class Recipe:
  """The filters that turn a raw log into `Interactions`, applied in the order of the fields.

  Attributes:
    min_rating: keep rows whose rating is at least this; None keeps every row.
    last_years: keep the calendar years before the newest raw row; None keeps every row.
    duplicates: which row of a repeated (user, item) pair stays, by time: 'first' or 'last'. Rows
      of the same time count in file order.
    min_user_interactions: users with fewer rows are dropped, repeated until nothing changes.
    min_item_interactions: the same for items.
  """
  min_rating: Optional[float] = None
  last_years: Optional[int] = None
  duplicates: str = 'last'
  min_user_interactions: int = 1
  min_item_interactions: int = 1

  def __post_init__(self):
    if self.duplicates not in ('first', 'last'):
      raise UserError(f'duplicates is {self.duplicates!r}; choose first or last.')
    for field in ('min_user_interactions', 'min_item_interactions'):
      if getattr(self, field) < 1:
        raise UserError(f'{field} is {getattr(self, field)}; it must be 1 or more.')

  def override(self, values: Optional[Mapping[str, Any]]) -> 'Recipe':
    """A copy with each value of `values` that is not None in place of the recipe's own."""
    given = {key: value for key, value in (values or {}).items() if value is not None}
    unknown = set(given) - {field.name for field in dataclasses.fields(self)}
    if unknown:
      raise UserError(f'unknown filter {", ".join(sorted(unknown))}.')
    return dataclasses.replace(self, **given)

  def digest(self, *more: Any) -> str:
    """A short hex digest of the recipe and of whatever else decides the prepared table."""
    text = json.dumps([dataclasses.asdict(self), *more], sort_keys=True)
    return hashlib.sha256(text.encode('utf-8')).hexdigest()[:12]


@dataclasses.dataclass(frozen=True)
class PaperStatistics:
  """One column of the paper's table of data set statistics."""
  edges: int
  users: int
  items: int
  average_user_degree: float
  average_item_degree: float
  percent_new_users: float
  percent_new_items: float
  months: float


@dataclasses.dataclass(frozen=True)
class DataSet:
  """A data set that the tools know by name.

  Attributes:
    recipe: its filters.
    page: the owner's page, where a person gets the files.
    files: the file names expected, as a phrase.
    terms: the owner's terms in a few words.
    paper: the paper's counts, or None.
    note: what to know when the counts differ from the paper's.
    url: where `--download` fetches it from, or None where the owner asks for a log-in or consent.
  """
  recipe: Recipe
  page: str = ''
  files: str = ''
  terms: str = ''
  paper: Optional[PaperStatistics] = None
  note: str = ''
  url: Optional[str] = None


DATASETS = {
    'gowalla': DataSet(
        # The authors keep the last row of a pair in file order; the file is newest first within a
        # user, so that row is the earliest in time.
        recipe=Recipe(duplicates='first', min_user_interactions=20, min_item_interactions=20),
        page='https://snap.stanford.edu/data/loc-gowalla.html',
        files='loc-gowalla_totalCheckins.txt.gz (or .txt)',
        terms='free for research; cite the owner',
        paper=PaperStatistics(281412, 5992, 5639, 46.96, 49.90, 2.67, 0.67, 19),
        url='https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz'),
    'yelp': DataSet(
        recipe=Recipe(min_rating=4, last_years=5, min_user_interactions=10,
                      min_item_interactions=10),
        page='https://www.yelp.com/dataset',
        files='yelp_academic_dataset_review.json and yelp_academic_dataset_business.json',
        terms='academic use under the Yelp dataset agreement, no redistribution',
        paper=PaperStatistics(942395, 40863, 25338, 23.06, 37.19, 3.94, 1.72, 6),
        note='the owner replaces this data set every year, and five years back from a newer file '
             'are other rows than the authors had.'),
    'taobao14': DataSet(
        recipe=Recipe(min_user_interactions=10, min_item_interactions=10),
        page='https://tianchi.aliyun.com/dataset/46',
        files='tianchi_mobile_recommend_train_user.csv',
        terms='research use after a free log-in, no redistribution',
        paper=PaperStatistics(749438, 8844, 39103, 84.74, 19.17, 1.67, 2.60, 1)),
    'taobao15': DataSet(
        recipe=Recipe(min_user_interactions=10, min_item_interactions=10),
        page='https://tianchi.aliyun.com/dataset/53',
        files='ijcai2016_taobao.csv (or ijcai2016_taobao)',
        terms='research use after a free log-in, no redistribution',
        paper=PaperStatistics(1332602, 92605, 9842, 14.39, 135.40, 2.67, 0.22, 5)),
    'netflix': DataSet(
        recipe=Recipe(min_user_interactions=100, min_item_interactions=30),
        page='https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data',
        files='combined_data_1.txt to combined_data_4.txt (or the older folder of mv_*.txt files)',
        terms='non-commercial research, no redistribution',
        paper=PaperStatistics(12402763, 63691, 10271, 194.73, 1207.56, 4.36, 0.72, 6),
        note='the paper does not name its rating filter and its edge count suggests that the '
             'authors kept a subset; --min_rating=5 comes near.'),
    'ml10m': DataSet(
        recipe=Recipe(),
        page='https://grouplens.org/datasets/movielens/10m/',
        files='ratings.dat and movies.dat',
        terms='research use, no redistribution without permission',
        paper=PaperStatistics(10000054, 71567, 10681, 143.11, 936.59, 4.87, 7.12, 168),
        note='the paper prints 71,567 users and 10,681 items, the counts of the owner\'s read-me; '
             '69,878 users and 10,677 items occur in ratings.dat, and the paper\'s average degrees '
             'fit those.',
        url='https://files.grouplens.org/datasets/movielens/ml-10m.zip'),
    'drift': DataSet(recipe=Recipe()),
    'csv': DataSet(recipe=Recipe(duplicates='first')),
}


def find(name: str) -> DataSet:
  """The data set called `name`, or a sentence that lists the names there are."""
  if name not in DATASETS:
    raise UserError(f'unknown data set {name!r}; choose one of {", ".join(sorted(DATASETS))}.')
  return DATASETS[name]
