"""Asks the current version of a store."""
from absl import flags

from graphsane_tf import cli
from graphsane_tf.commands import stores
from graphsane_tf.errors import UserError

HELP = 'What the current version of a store recommends.'
EXAMPLES = ('graphsane recommend --store=shop --user=u00012 --k=10',)


def define():
  stores.define_store()
  flags.DEFINE_string('user', None, 'Whom to recommend to: an id of the log.')
  flags.DEFINE_string('similar_to', None, 'Show items that are similar to this one instead.')
  flags.DEFINE_integer('k', 10, 'How many items.', lower_bound=1)
  return {'flags': ['store', 'user', 'similar_to', 'k']}


def main():
  values = flags.FLAGS
  path = stores.folder()
  if (values.user is None) == (values.similar_to is None):
    raise UserError('for whom? Give either --user=ID or --similar_to=ITEM.')
  cli.load_tensorflow_quietly()
  from graphsane_tf.recommender import Recommender  # pylint: disable=g-import-not-at-top
  opened = Recommender.open(path)
  if values.user is None:
    answer = opened.similar_items(values.similar_to, values.k)
  else:
    answer = opened.recommend(values.user, values.k)
    if not opened.knows(values.user):
      print(f'{values.user} is unknown to version {opened.version}: what is popular, by the logarithm of its counts')
  if not answer:
    print('nothing is left to recommend: the version knows no other item.')
  for item, score in answer:
    print(f'{item}\t{score:.4f}')
