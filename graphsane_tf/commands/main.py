"""From `graphsane COMMAND --flags` to the command's main()."""
import importlib
import shutil
import sys
import textwrap
from typing import List, Optional, Sequence

from graphsane_tf import cli

from absl import flags

import graphsane_tf
from graphsane_tf import registry
from graphsane_tf.commands import COMMANDS
from graphsane_tf.errors import UserError

_HELP = ('-h', '-help', '--help')
_WIDTH = 80
# What stands for the value of a flag without a default.
_PLACES = {'interactions': 'FILE', 'workdir': 'DIR', 'base_from': 'DIR', 'plugin': 'FILE.py', 'recipes': 'FILE.py',
           'run': 'DIR', 'user': 'ID', 'output': 'FILE', 'json': 'FILE', 'log': 'FILE', 'extra': "'--FLAG=...'",
           'store': 'DIR', 'forget_users': 'FILE', 'forget_items': 'FILE', 'similar_to': 'ITEM',
           'token_file': 'FILE', 'ray': 'ADDRESS', 'write': 'DIR'}


def graphsane() -> None:
  """The console command."""
  words = sys.argv[1:]
  if not words or words[0] in _HELP or words[0] == 'help':
    print(_overview())
    sys.exit(0)
  if words[0] in ('--version', 'version'):
    print(f'graphsane_tf {graphsane_tf.__version__}')
    sys.exit(0)
  if words[0] not in COMMANDS:
    cli.fail(f'there is no command {words[0]!r}; choose from {", ".join(COMMANDS)}.')
  start(words[0], [f'graphsane {words[0]}', *words[1:]])


def start(command: str, argv: Optional[Sequence[str]] = None) -> None:
  """Runs a command; `argv` begins with the program's name and is the process's own by default."""
  if argv is not None:
    sys.argv = list(argv)
  module = importlib.import_module(f'graphsane_tf.commands.{COMMANDS[command][0]}')
  # Before flags are defined: their values are the names of methods.
  try:
    with cli.importing():
      registry.load_entry_points()
      for path in _plugins(sys.argv[1:]):
        registry.load_plugin(path)
    if 'tensorflow' in sys.modules:
      cli.load_tensorflow()
    # Before --config is defined, which looks at the command line.
    sys.argv[1:] = cli.with_recipe(sys.argv[1:])
  except UserError as error:
    cli.fail(str(error))
  groups = module.define()
  flags.DEFINE_multi_string('plugin', [], 'Python file that registers methods; may be repeated.')
  if any(word in _HELP for word in sys.argv[1:]):
    print(_page(command, module, groups))
    sys.exit(0)
  cli.run(module.main, words=hasattr(module, 'WORDS'))


def _plugins(words: Sequence[str]) -> List[str]:
  """Values of --plugin."""
  plugins = []
  for place, word in enumerate(words):
    name, given, value = word.lstrip('-').partition('=')
    if word.startswith('-') and name == 'plugin':
      plugins.append(value if given else ''.join(words[place + 1:place + 2]))
  return plugins


def _overview() -> str:
  lines = ['graphsane COMMAND --flags', '']
  lines += [f'  {name:10} {what}' for name, (_, what) in COMMANDS.items()]
  lines += ['', 'graphsane COMMAND --help shows its flags. Begin with: graphsane run --dataset=drift --kd=sgct --sane']
  return '\n'.join(lines)


def _page(command: str, module, groups) -> str:
  """The flags of a command by group, with their true defaults; fits a screen."""
  width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns)
  lines = [module.HELP, '', *[f'  {example}' for example in module.EXAMPLES]]
  groups = {**groups, 'more': [*groups.get('more', []), 'plugin']}
  for title, names in groups.items():
    words = [_flag(flags.FLAGS[name]) for name in names]
    lines += ['', f'{title}:', *textwrap.wrap('  '.join(words), width, initial_indent='  ',
                                               subsequent_indent='  ', break_long_words=False,
                                               break_on_hyphens=False)]
  if hasattr(module, 'AFTER'):
    lines += ['', *textwrap.wrap(module.AFTER, width)]
  lines += ['', f'graphsane {command} --helpfull explains each flag.']
  return '\n'.join(lines)


def _flag(flag: flags.Flag) -> str:
  """'--seed=0', '--kd=none|lsp|...' with the default first, or '--sane' ('--noexport' where it is on already)."""
  default = flag.default
  # Method flags are None unless given; their help names the configuration's default.
  said = flag.help.rpartition('(default: ')[2].partition(')')[0].strip("'") if '(default: ' in flag.help else ''
  if flag.flag_type() == 'bool':
    return f'--{"no" if default else ""}{flag.name}'
  choices = getattr(flag.parser, 'enum_values', None)
  if choices:
    first = [str(said or default)] if said or default else []
    return f'--{flag.name}=' + '|'.join([*first, *[name for name in choices if name not in first]])
  if flag.flag_type() == 'config object':
    return f'--{flag.name}=default'
  if isinstance(default, list):
    default = ','.join(map(str, default))
  shown = default if default not in (None, '') else said
  kind = {'int': 'N', 'float': 'X'}.get(flag.flag_type(), _PLACES.get(flag.name, 'TEXT'))
  return f'--{flag.name}={shown if shown not in (None, "") and " " not in str(shown) else kind}'
