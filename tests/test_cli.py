"""What is said about a flag that cannot be."""
import pytest
from absl import flags

from graphsane_tf import cli, config_files
from graphsane_tf.errors import UserError

SENTENCES = {
    '--kd=sgtc': '--kd=sgtc does not exist; did you mean sgct? Choose from none, lsp, sgct.',
    '--kd=magic': '--kd=magic does not exist; choose from none, lsp, sgct.',
    '--kd': 'needs a value: --kd=...',
    '--epochs=three': '--epochs=three is not a whole number.',
    '--epochs=-1': '--epochs=-1 is below 0.',
    '--batch=0': '--batch=0: 0 is not a positive integer.',
    '--rate=fast': '--rate=fast is not a number.',
    '--sane=yes': '--sane=yes is neither true nor false.',
    '--epoch=3': 'there is no flag --epoch; did you mean --epochs?',
    '--san': 'there is no flag --san; did you mean --sane?',
    '--xyzzy=3': 'there is no flag --xyzzy: --help lists the flags.',
}


@pytest.fixture(name='values')
def _values():
  values = flags.FlagValues()
  to = {'flag_values': values}
  flags.DEFINE_enum('kd', 'none', ['none', 'lsp', 'sgct'], '', **to)
  flags.DEFINE_integer('epochs', 1, '', lower_bound=0, **to)
  flags.DEFINE_integer('batch', 1, '', lower_bound=1, **to)
  flags.DEFINE_float('rate', 1., '', **to)
  flags.DEFINE_bool('sane', False, '', **to)
  return values


@pytest.mark.fault('mistake on the command line')
@pytest.mark.parametrize('word', SENTENCES)
def test_a_wrong_flag_is_a_sentence(word, values):
  with pytest.raises((flags.Error, AttributeError, KeyError, ValueError)) as error:
    values(['tool', word])
  assert cli.flag_sentence(error.value) == SENTENCES[word]


@pytest.mark.fault('mistake on the command line')
def test_all_flags_that_are_missing_are_named(values):
  for name in ('users', 'items'):
    flags.DEFINE_integer(name, None, '', required=True, flag_values=values)
  with pytest.raises(flags.Error) as error:
    values(['tool'])
  assert cli.flag_sentence(error.value) == 'needs a value: --users=..., --items=...'


@pytest.mark.fault('mistake on the command line')
@pytest.mark.parametrize('given, sentence', [
    ('paperr', 'does not exist; did you mean paper[?] Choose from datasets, default, paper, .*, or give the path'),
    ('qqq:netflix', 'does not exist; choose from datasets, default, ')])
def test_a_mistyped_set_is_named_with_the_nearest(given, sentence):
  with pytest.raises(UserError, match=f'--config={given} {sentence}'):
    config_files.load_config(given)


@pytest.mark.fault('mistake on the command line')
def test_a_mistyped_recipe_is_named_with_the_nearest():
  with pytest.raises(UserError, match='--recipe=stong does not exist; did you mean strong[?]'):
    cli.with_recipe(['--recipe=stong'])
