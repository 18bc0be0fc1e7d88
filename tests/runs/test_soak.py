"""A soak: days cut by the calendar, figures of every way of keeping up, tables."""
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from graphsane_tf.data import drift, growing
from graphsane_tf.errors import UserError
from graphsane_tf.reporting import soak as tables
from graphsane_tf.runs import soak
from graphsane_tf.runs import store as stores
from tests import store_files

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAY = 86400


def test_spans():
  assert soak.seconds_of('2w', 'every') == 14 * DAY and soak.seconds_of('12h', 'every') == DAY // 2
  for text in ('', '0d', '1', 'd', '1m', '-1d'):
    with pytest.raises(UserError, match='--every='):
      soak.seconds_of(text, 'every')


def test_days_are_cut_by_the_calendar_and_numbered_as_a_store_does(tmp_path):
  log = drift.generate('small')
  days = soak.cut_days(log, tmp_path, 180 * DAY, 10 * DAY, 3)
  assert len(days.files) == 5 and len(days.cuts) == 6
  start = log.time[0] // DAY * DAY
  read = [pd.read_parquet(file) for file in days.files]
  edges = [start, *[start + (180 + 10 * number) * DAY for number in range(5)]]
  for part, first, stop in zip(read, edges, edges[1:]):
    assert (part.timestamp >= first).all() and (part.timestamp < stop).all()
  assert sum(map(len, read)) == (log.time < edges[-1]).sum() == days.cuts[-1]
  kept = growing.empty()
  for file, cut in zip(days.files, days.cuts[1:]):
    tables_read = stores.read_rows(file, stores.csv.Columns(), None, None, lambda line: None)
    kept, _ = growing.append(kept, tables_read, file.name)
    assert len(kept) == cut
  assert kept.fingerprint == days.log.fingerprint
  with pytest.raises(UserError, match='--history'):
    soak.cut_days(log, tmp_path / 'other', 900 * DAY, DAY, 3)


def figures():
  def days(values, **more):
    return {str(day): {'recall@20': value, 'ndcg@20': None if value is None else value / 2, **{
        name: value[day] for name, value in more.items()}} for day, value in enumerate(values)}
  return {'ours': days([.2, .22, .24, None], seconds=[600., 60., 30., 0.], bytes=[1 << 20] * 4,
                       decision=['first', 'trained', 'refused', 'nothing']),
          'never': days([.2, .2, .2, None]), 'popularity': days([.1, .1, .1, None], seconds=[.1] * 4),
          'retrained': days([.2, .21, .25, None], seconds=[600., 0., 450., 0.])}


def test_tables(tmp_path):
  found = figures()
  table = tables.summary(found)
  cells = {row[0]: dict(zip(table['heads'], row)) for row in table['cells']}
  ours, never = cells['ours, with gate'], cells['never updated']
  assert ours['days'] == 3 and ours['recall@20'] == pytest.approx(.22) and ours['ndcg@20'] == pytest.approx(.11)
  assert ours['minutes an update'] == '0.75' and ours['decisions'] == '1 trained, 1 refused, 1 nothing'
  assert never['ours over it, %'] == pytest.approx(100 * np.mean([0, .02, .04]) / .2)
  assert cells['full retraining, weekly']['minutes an update'] == '7.50'
  kept, time = tables.verdicts(found, .05)
  assert 'never updated, 0.2000' in kept and '+10.0 %' in kept and kept.endswith('kept.') and 'not kept' not in kept
  assert time == 'An update takes 0.10 of full retraining (target 0.20).'
  # Days that retraining has not come to do not count.
  later = {**found, 'ours': {**found['ours'], '9': {**found['ours']['1'], 'seconds': 4500.}}}
  assert tables.verdicts(later, .05)[1] == time
  found['ease'] = {day: {**entry, 'recall@20': .25} for day, entry in found['never'].items()}
  assert 'not kept' in tables.verdicts(found, .05)[0]
  text = tables.write(tmp_path, found, 'A soak', .05)
  assert '**A soak**' in text and json.loads((tmp_path / 'summary.json').read_text())['data'] == found
  by_day = json.loads((tmp_path / 'recall_20.json').read_text())
  assert by_day['cells'][1] == [1, .22, .2, .1, .25, .21, 'trained', '1.00']
  assert (tmp_path / 'soak.png').read_bytes().startswith(b'\x89PNG')


@pytest.mark.slow
def test_a_soak_goes_on_where_it_was_cut_off(tmp_path):
  class Stop(Exception):
    pass

  def run(folder, say):
    days = soak.cut_days(drift.generate('small'), folder / 'days', 180 * DAY, 7 * DAY, 2)
    config = store_files.config(kd='sgct', sampler='sane', model__embedding_dim=8)
    return soak.Soak(folder, days, config, stores.Settings(), 7 * DAY, say).run(list(soak.METHODS), 2)

  whole = run(tmp_path / 'whole', lambda line: None)
  for word in ('training on all', 'day   0  EASE', 'block 1 epoch  1', 'day   1  full'):
    def say(line, word=word):
      if word in line:
        raise Stop
    with pytest.raises(Stop):
      run(tmp_path / 'cut', say)
  cut = run(tmp_path / 'cut', lambda line: None)
  assert set(whole) == set(soak.METHODS) and all(set(days) == {'0', '1', '2'} for days in whole.values())
  for method, days in whole.items():
    for day, entry in days.items():
      same = {name for name in entry if name not in ('seconds', 'cpu', 'wall', 'bytes')}
      assert {name: entry[name] for name in same} == {name: cut[method][day][name] for name in same}
  assert whole['ours']['0']['recall@20'] == whole['never']['0']['recall@20'] == whole['finetuned']['0']['recall@20']
  assert {days['decision'] for days in (whole['finetuned']['1'], whole['finetuned']['2'])} == {'trained'}
  assert 0 < whole['popularity']['1']['recall@20'] < whole['ease']['1']['recall@20']


@pytest.mark.slow
def test_the_program_of_the_guide(tmp_path):
  text = (ROOT / 'docs' / 'updating.md').read_text()
  program = re.search(r'```python\n(.*?)```', text, re.S)[1]
  done = subprocess.run([sys.executable, '-c', program], cwd=tmp_path, capture_output=True, text=True, check=False,
                        env={**os.environ, 'PYTHONPATH': str(ROOT)})
  assert done.returncode == 0, done.stderr
  lines = done.stdout.splitlines()
  assert lines[0].startswith('published version 2') and lines[1].startswith('2 [(') and lines[-1] == 'False'
