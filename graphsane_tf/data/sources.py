"""What each data set is: where its owner keeps it, how it is read and filtered, what the paper counted.

A file of the user's own adds one, here a log in a format of theirs, `--dataset=pipes --pipes_mark=';'`:

    import dataclasses
    import pyarrow as pa
    from graphsane_tf import data
    from graphsane_tf.data.sources import FileSource, option

    @data.SOURCES.register('pipes')
    @dataclasses.dataclass(frozen=True)
    class Pipes(FileSource):
      files = 'log.pipes'
      mark: str = option('|', 'What separates the values.')

      def find(self, folder):
        return [path for path in [folder / 'log.pipes'] if path.is_file()]

      def read(self, files, log):
        rows = [line.split(self.mark) for line in files[0].read_text().splitlines()]
        user, item, seconds = zip(*rows)
        yield pa.table({'user': user, 'item': item, 'timestamp': [int(text) for text in seconds]})

Nothing here imports pyarrow or pandas, so that flags are quickly defined; readers are imported when they read.
"""
import abc
import dataclasses
import importlib
import os
import pathlib
from typing import Any, Callable, ClassVar, Dict, Iterator, List, Optional, Sequence, Tuple

from graphsane_tf.data.interactions import Interactions
from graphsane_tf.data.recipes import PaperStatistics, Recipe
from graphsane_tf.errors import UserError


def option(default: Any, text: str, *, flag: str = '', path: bool = False, choices: Sequence[str] = (),
           low: Optional[int] = None) -> Any:
  """A field of a data source that a flag sets.

  Args:
    default: its value unless given: a bool, int, float, str, or None for a str that may be left out.
    text: the flag's help.
    flag: the flag's name; NAME_FIELD by default, where NAME is the data set.
    path: whether it is the path of a file. Such a file names the run's folder, and reports leave its place out.
    choices: the only values, if there are any.
    low: smallest number.
  """
  return dataclasses.field(default=default, metadata={
      'text': text, 'flag': flag, 'path': path, 'choices': choices, 'low': low})


@dataclasses.dataclass(frozen=True)
class DataSource(abc.ABC):  # noqa: B024
  """A data set that the tools know by name: a `FileSource` or a `GeneratedSource`.

  Fields are its options, each an `option`.

  Attributes:
    recipe: its filters.
    page: the owner's page.
    paper: the paper's counts, or None.
    note: what to know when the counts differ from the paper's.
  """
  recipe: ClassVar[Recipe] = Recipe()
  page: ClassVar[str] = ''
  paper: ClassVar[Optional[PaperStatistics]] = None
  note: ClassVar[str] = ''

  @classmethod
  def flags(cls, name: str) -> Dict[str, dataclasses.Field]:
    """Its options by the names of their flags; `name` is the data set's."""
    return {field.metadata.get('flag') or f'{name}_{field.name}': field for field in dataclasses.fields(cls)}

  @classmethod
  def paths(cls) -> List[str]:
    """Its options that are paths of files."""
    return [field.name for field in dataclasses.fields(cls) if field.metadata.get('path')]

  def choices(self) -> Dict[str, Any]:
    """Its options that differ from their defaults; paths are absolute."""
    given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)
             if getattr(self, field.name) != field.default}
    return {name: os.path.realpath(value) if name in self.paths() else value
            for name, value in given.items()}


class FileSource(DataSource):
  """A data set that is read from files and filtered; the result is kept on disk.

  Attributes:
    files: the file names expected, as a phrase.
    terms: the owner's terms in a few words.
    url: where `--download` fetches it from, or None where the owner asks for a log-in or consent.
    members: what is taken out of the archive there; () if it is no archive.
    version: counts the changes of what is made of a file; prepared copies of earlier versions are left alone.
  """
  files: ClassVar[str] = 'its files'
  terms: ClassVar[str] = ''
  url: ClassVar[Optional[str]] = None
  members: ClassVar[Tuple[str, ...]] = ()
  version: ClassVar[int] = 0

  @abc.abstractmethod
  def find(self, folder: pathlib.Path) -> List[pathlib.Path]:
    """The raw files that are there; [] if one that is needed is missing.

    Args:
      folder: <data_dir>/<name>, where raw files are put.
    """

  @abc.abstractmethod
  def read(self, files: List[pathlib.Path], log: Callable[[str], None]) -> Iterator[Any]:
    """Yields pyarrow tables in file order: user, item (text or whole numbers), timestamp (int64 seconds since 1970).

    They may have a rating (float64) and a category of the item, too.

    Args:
      files: what `find` gave.
      log: takes a line that a person should know; it is kept and shown with the prepared copy.

    Raises:
      UserError: names the file and the line that is wrong.
    """


class GeneratedSource(DataSource):
  """A data set that is drawn anew each time; filters have no meaning for it."""

  @abc.abstractmethod
  def generate(self) -> Interactions:
    """Draws the log; the same options always give the same one."""


def _reader(name: str) -> Any:
  return importlib.import_module(f'graphsane_tf.data.readers.{name}')


class _Published(FileSource):
  """Read by the module of `readers` that has the name of the class."""

  def find(self, folder):
    return _reader(type(self).__name__.lower()).find(folder)

  def read(self, files, log):
    return _reader(type(self).__name__.lower()).read(files, log)


class Gowalla(_Published):
  """Check-ins."""
  # The authors keep the last row of a pair in file order; the file is newest first within a user, so that row is
  # the earliest in time.
  recipe = Recipe(duplicates='first', min_user_interactions=20, min_item_interactions=20)
  page = 'https://snap.stanford.edu/data/loc-gowalla.html'
  files = 'loc-gowalla_totalCheckins.txt.gz (or .txt)'
  terms = 'free for research; cite the owner'
  paper = PaperStatistics(281412, 5992, 5639, 46.96, 49.90, 2.67, 0.67, 19)
  url = 'https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz'


class Yelp(_Published):
  """Reviews of businesses."""
  recipe = Recipe(min_rating=4, last_years=5, min_user_interactions=10, min_item_interactions=10)
  page = 'https://www.yelp.com/dataset'
  files = 'yelp_academic_dataset_review.json and yelp_academic_dataset_business.json'
  terms = 'academic use under the Yelp dataset agreement, no redistribution'
  paper = PaperStatistics(942395, 40863, 25338, 23.06, 37.19, 3.94, 1.72, 6)
  note = ('the owner replaces this data set every year, and five years back from a newer file are other rows than '
          'the authors had.')


class Taobao14(_Published):
  """All behaviours on Tianchi's mobile log of 2014."""
  recipe = Recipe(min_user_interactions=10, min_item_interactions=10)
  page = 'https://tianchi.aliyun.com/dataset/46'
  files = 'tianchi_mobile_recommend_train_user.csv'
  terms = 'research use after a free log-in, no redistribution'
  paper = PaperStatistics(749438, 8844, 39103, 84.74, 19.17, 1.67, 2.60, 1)


class Taobao15(_Published):
  """Purchases of the IJCAI-16 log of 2015."""
  recipe = Recipe(min_user_interactions=10, min_item_interactions=10)
  page = 'https://tianchi.aliyun.com/dataset/53'
  files = 'ijcai2016_taobao.csv (or ijcai2016_taobao)'
  terms = 'research use after a free log-in, no redistribution'
  paper = PaperStatistics(1332602, 92605, 9842, 14.39, 135.40, 2.67, 0.22, 5)


class Netflix(_Published):
  """Ratings of the Netflix Prize."""
  recipe = Recipe(min_user_interactions=100, min_item_interactions=30)
  page = 'https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data'
  files = 'combined_data_1.txt to combined_data_4.txt (or the older folder of mv_*.txt files)'
  terms = 'non-commercial research, no redistribution'
  paper = PaperStatistics(12402763, 63691, 10271, 194.73, 1207.56, 4.36, 0.72, 6)
  note = ('the paper does not name its rating filter and its edge count suggests that the authors kept a subset; '
          '--min_rating=5 comes near.')


class Ml10m(_Published):
  """MovieLens 10M."""
  page = 'https://grouplens.org/datasets/movielens/10m/'
  files = 'ratings.dat and movies.dat'
  terms = 'research use, no redistribution without permission'
  paper = PaperStatistics(10000054, 71567, 10681, 143.11, 936.59, 4.87, 7.12, 168)
  note = ("the paper prints 71,567 users and 10,681 items, the counts of the owner's read-me; 69,878 users and "
          "10,677 items occur in ratings.dat, and the paper's average degrees fit those.")
  url = 'https://files.grouplens.org/datasets/movielens/ml-10m.zip'
  members = ('ratings.dat', 'movies.dat')


@dataclasses.dataclass(frozen=True)
class Drift(GeneratedSource):
  """A log with planted changes of interest: see `graphsane_tf.data.drift`."""
  size: str = option('default', 'Size of the generated drift log.', choices=('small', 'default', 'large'))
  seed: int = option(0, 'Seed of the generated drift log.', low=0)
  hide_categories: bool = option(False, 'Generate the drift log without categories.', flag='hide_categories')

  def generate(self):
    from graphsane_tf.data import drift  # pylint: disable=import-outside-toplevel
    return drift.generate(self.size, self.seed, self.hide_categories)

  def truth(self):
    """What is planted in the log, a `drift.DriftTruth`."""
    from graphsane_tf.data import drift  # pylint: disable=import-outside-toplevel
    return drift.truth(self.size, self.seed)


def _column(ours: str) -> Any:
  return option(None, f'Column of the {ours} in --interactions (default: {ours}).', flag=f'{ours}_column')


@dataclasses.dataclass(frozen=True)
class Csv(FileSource):
  """A log of the user's own, wherever it is."""
  recipe = Recipe(duplicates='first')
  version = 2
  interactions: Optional[str] = option(
      None, 'Your own log (with --dataset=csv): .csv, .tsv or .inter, plain or .gz, or .parquet.',
      flag='interactions', path=True)
  user_column: Optional[str] = _column('user')
  item_column: Optional[str] = _column('item')
  timestamp_column: Optional[str] = _column('timestamp')
  category_column: Optional[str] = _column('category')
  rating_column: Optional[str] = _column('rating')

  def find(self, folder):
    if not self.interactions:
      raise UserError('--dataset=csv needs the path of your log: add --interactions=FILE.')
    path = pathlib.Path(self.interactions)
    _reader('csv').check(path)
    return [path]

  def read(self, files, log):
    columns = _reader('csv').Columns(user=self.user_column, item=self.item_column, timestamp=self.timestamp_column,
                                     category=self.category_column, rating=self.rating_column)
    return _reader('csv').read(files[0], columns, log)
