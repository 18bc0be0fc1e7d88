"""Recall against training time: samplers, fine-tuning and full retraining."""
from graphsane_tf.reporting import wording
from graphsane_tf.reporting.tables import samplers
from graphsane_tf.reporting.tables.base import Table, line_of
from graphsane_tf.reporting.tables.methods import FINE_TUNE
from graphsane_tf.runs.grid import Row

FULL = Row('Full retraining', {'full_retrain': True})


class Time(Table):
  """Recall and seconds of a block, a line a method."""
  title = 'Recall against training time'
  rows = (FINE_TUNE, *samplers.ROWS, FULL)
  reference = FULL
  in_paper = True
  figure = True
  costs = True

  def pictures(self, drawn, shown):
    return [(drawn.recall_against_time(shown.data), f'Recall against training time, {shown.dataset}')]

  def sentences(self, shown):
    sane, plain, full = (line_of(shown.data, row) for row in (samplers.SANE, samplers.UNIFORM, FULL))
    told = []
    # Means over different seeds are not compared.
    if sane and plain and plain['seconds'] and sane['values'].keys() == plain['values'].keys():
      change = 100 * (sane['seconds'] / plain['seconds'] - 1)
      told.append(f'{shown.dataset}: a block of SGCT with SANE trained in {sane["seconds"]:.1f} s, '
                  f'{change:+.0f} % to uniform negatives (until early stopping, '
                  f'{wording.counted(sane["seeds"])}).')
    if sane and full and sane['seconds'] and sane['values'].keys() == full['values'].keys():
      told.append(f'{shown.dataset}: full retraining takes {full["seconds"] / sane["seconds"]:.1f} times the time '
                  f'of {sane["label"]} and reaches Recall@20 {full["average"]:.4f} against '
                  f'{sane["average"]:.4f} ({wording.counted(sane["seeds"])}).')
    return told
