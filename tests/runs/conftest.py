"""A finished small run, and a copy that a test may damage."""
import shutil

import pytest

from tests import short_exports as exports
from tests.runs import small_runs


@pytest.fixture(name='_short', scope='module', autouse=True)
def short_fixture(short_exports):
  del short_exports


@pytest.fixture(name='finished_run', scope='session')
def finished_run_fixture(tmp_path_factory):
  folder = tmp_path_factory.mktemp('small') / 'run'
  # It is made before a module's fixtures are.
  with exports.short_exports():
    small_runs.run(folder)
  return folder


@pytest.fixture(name='run_copy')
def run_copy_fixture(finished_run, tmp_path):
  return shutil.copytree(finished_run, tmp_path / 'run')
