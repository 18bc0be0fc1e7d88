"""Evaluates a finished run under the released protocol's choices, and beside popularity, on the same weights."""
import pathlib

from absl import flags

from graphsane_tf import cli, files
from graphsane_tf.errors import UserError

HELP = "Evaluates finished runs under the released protocol's choices, and beside popularity."
EXAMPLES = ('graphsane audit --run=runs/drift-sgct-sane-seed0',)


def define():
  flags.DEFINE_list('run', None, 'Folders of runs.', required=True)
  flags.DEFINE_string('data_dir', 'data', 'Folder of raw files and prepared copies.')
  return {'flags': ['run', 'data_dir']}


def main():
  cli.load_tensorflow_quietly()
  from graphsane_tf.reporting import audit, outputs  # pylint: disable=g-import-not-at-top
  from graphsane_tf.runs import incremental  # pylint: disable=g-import-not-at-top
  for folder in flags.FLAGS.run:
    run = incremental.open_run(folder, flags.FLAGS.data_dir)
    results = files.read_object(run.workdir / 'results.json', {'blocks': []})
    blocks = [entry['block'] for entry in results['blocks'] if entry['block'] > 0]
    if not blocks:
      raise UserError(f'{folder} has no finished block after the base block: run it first.')
    name = pathlib.Path(folder).name
    table, personal = audit.audit(run, blocks), audit.beyond_popularity(run, blocks)
    text = '\n'.join([
        outputs.markdown(table, f'Protocol audit of {name}, test Recall@20', table['note']),
        outputs.markdown(personal, f'What {name} knows beyond popularity, test Recall@20', personal['note'])])
    files.write_json(run.workdir / 'audit.json', {**table, 'beyond_popularity': personal})
    files.write_text(run.workdir / 'audit.md', text)
    print(text, flush=True)
