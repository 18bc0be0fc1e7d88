"""Brings the summaries of docs/results.md and README.md up to date with the tables in docs/results, and draws them.

  python experiments/results.py
"""
import pathlib

from graphsane_tf.reporting import verdict

ROOT = pathlib.Path(__file__).resolve().parents[1]

if __name__ == '__main__':
  verdict.update(ROOT / 'docs' / 'results', ROOT / 'docs' / 'results.md', ROOT / 'README.md')
