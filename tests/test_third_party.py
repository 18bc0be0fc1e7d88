"""Tests of the published numbers and of what is said about the data sets."""
import collections
import csv
import dataclasses
import decimal
import pathlib

import pytest

from graphsane_tf.data import SOURCES, recipes

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / 'third_party'
PUBLISHED = ROOT / 'graphsane_tf' / 'reporting' / 'paper_results'
# Values of each table.
SIZES = {
    'main': 120, 'per_block': 300, 'metric_ranks': 24, 'samplers': 56, 'ablation_sgct': 28,
    'ablation_lwckd': 28, 'clustering_yelp': 24, 'clustering_taobao14': 24, 'sensitivity_k': 40,
    'sensitivity_q': 24, 'dataset_statistics': 48, 'hyperparameters': 16}
TEXT = ('loss_bpr', 'loss_kd', 'loss_sane', 'loss_kl', 'end_to_end')
BLOCKS = ('inc_1', 'inc_2', 'inc_3')
# Blocks and averages are rounded to four digits each.
ROUNDING = decimal.Decimal('0.0001')
# Printed averages that are not the mean of their blocks, and that mean.
WRONG_AVERAGES = {
    ('per_block', 'netflix', 'GraphSAIL-SANE'): '0.0782',  # Block 3 is printed 0.01014.
    ('per_block', 'ml10m', 'Fine Tune'): '0.0928',
    ('per_block', 'gowalla', 'Inv_degree'): '0.1721',
    ('per_block', 'gowalla', 'LWC-KD-SANE'): '0.1902',
    ('samplers', 'taobao14', 'SGCT+NS Cache'): '0.0161',
    ('clustering_yelp', 'yelp', 'SGCT-SANE (end-to-end)'): '0.0862',
}


def _read(name):
  with open(PUBLISHED / f'{name}.csv', encoding='utf-8', newline='') as stream:
    return list(csv.DictReader(stream, strict=True))


def _cells(name):
  """{everything before `column`: {column: value}}."""
  cells = collections.defaultdict(dict)
  for row in _read(name):
    key = tuple(text for field, text in row.items() if field not in ('column', 'value'))
    assert row['column'] not in cells[key], f'{key} has {row["column"]} twice'
    cells[key][row['column']] = row['value']
  return cells


def test_every_table_is_there():
  assert {path.stem for path in (PUBLISHED).glob('*.csv')} == set(SIZES)
  readme = (PUBLISHED / 'README.md').read_text(encoding='utf-8')
  assert all(f'`{name}.csv`' in readme for name in SIZES)


@pytest.mark.parametrize('name', SIZES)
def test_parses(name):
  rows = _read(name)
  assert len(rows) == SIZES[name]
  extra = {'sensitivity_k': ['K'], 'sensitivity_q': ['Q']}.get(name, [])
  known = set(SOURCES) | {'', 'all'}
  for row in rows:
    assert list(row) == ['table', 'dataset', 'method', *extra, 'column', 'value']
    assert row['table'] == name and None not in row.values() and row['column'] and row['value']
    assert set(row['dataset'].split('+')) <= known
    if name != 'hyperparameters' and row['column'] not in TEXT:
      assert decimal.Decimal(row['value']).is_finite()
  _cells(name)


def test_averages_are_those_of_the_blocks():
  wrong, checked = {}, 0
  for name in SIZES:
    for key, cells in _cells(name).items():
      if BLOCKS[0] in cells:
        mean = sum(decimal.Decimal(cells[block]) for block in BLOCKS) / len(BLOCKS)
        checked += 1
        if abs(mean - decimal.Decimal(cells['average'])) > ROUNDING:
          wrong[key] = str(mean.quantize(ROUNDING))
  assert checked == 60 + 14 + 6 + 6 + 10 + 6
  assert wrong == WRONG_AVERAGES
  assert _cells('per_block')['per_block', 'netflix', 'GraphSAIL-SANE']['inc_3'] == '0.01014'


def test_main_table_is_the_per_block_table():
  blocks = _cells('per_block')
  for (_, dataset, method), cells in _cells('main').items():
    other = blocks['per_block', dataset, method]
    assert cells['recall@20'] == other['average']
    # One or two digits after the point.
    change = decimal.Decimal(cells['delta_percent']) - decimal.Decimal(other['delta_percent'])
    assert abs(change) <= decimal.Decimal('0.05')


def test_statistics_are_those_of_the_recipes():
  fields = [field.name for field in dataclasses.fields(recipes.PaperStatistics)]
  names = {'months': 'time_span_months'}
  for (_, dataset, _), cells in _cells('dataset_statistics').items():
    paper = SOURCES[dataset].paper
    assert {field: float(cells[names.get(field, field)]) for field in fields} == {
        field: getattr(paper, field) for field in fields}


def test_every_data_set_has_its_owner_and_terms():
  sections = (FOLDER / 'datasets.md').read_text(encoding='utf-8').split('\n## ')[1:]
  found = {section.split('(`')[1].split('`)')[0]: section for section in sections}
  assert set(found) == {name for name, data_set in SOURCES.items() if data_set.page}
  for name, section in found.items():
    assert SOURCES[name].page in section
    for word in ('Owner', 'Page', 'File', 'Terms', 'Citation'):
      assert f'* {word}' in section
