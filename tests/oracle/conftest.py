"""Finds the material: SHARED_DIR, or ../shared beside the repository. Without it these tests are skipped."""
import os
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))


@pytest.fixture(scope='session')
def shared():
    path = os.path.abspath(os.environ.get('SHARED_DIR') or os.path.join(ROOT, '..', 'shared'))
    if not os.path.exists(os.path.join(path, 'oracle', 'oracle.py')):
        pytest.skip('no oracle at %s (set SHARED_DIR): the recorded answers of XProf are not checked' % path)
    return path


@pytest.fixture(scope='session')
def python():
    """A Python that has zstandard, without which answers in format=pb cannot be compared."""
    for candidate in (sys.executable, os.environ.get('ORACLE_PYTHON'), shutil.which('python3')):
        if candidate and subprocess.run([candidate, '-c', 'import zstandard'], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return candidate
    pytest.skip("no Python with the package 'zstandard' (or set ORACLE_PYTHON): format=pb cannot be compared")
