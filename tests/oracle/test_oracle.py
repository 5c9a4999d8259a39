"""XProf's recorded answers against ours: every request of the routes and tools that we answer must agree."""
import os
import re
import shutil
import subprocess
import sys

import daemon
import pytest

TOOLS = ['trace_viewer@', 'trace_viewer', 'hosts', 'runs', 'run_tools', 'module_list', 'config', 'version']
TOTAL = 677
LARGE = 36
LARGE_BYTES = 10 << 20


@pytest.fixture(scope='session')
def python():
    """A Python that has zstandard, without which answers in format=pb cannot be compared."""
    for candidate in (sys.executable, os.environ.get('ORACLE_PYTHON'), shutil.which('python3')):
        if candidate and subprocess.run([candidate, '-c', 'import zstandard'], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return candidate
    pytest.skip("no Python with the package 'zstandard' (or set ORACLE_PYTHON): format=pb cannot be compared")


def check(python, shared, logdir, golden, *options):
    """-> (passed, failed, skipped, text)"""
    d = daemon.Daemon('--logdir', logdir)
    try:
        done = subprocess.run([python, os.path.join(shared, 'oracle', 'oracle.py'), 'check', 'http://127.0.0.1:%d' % d.port,
                               golden, '--logdir', logdir, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=900, check=False)
        text = done.stdout.decode('utf8', 'replace')
        assert d.alive(), 'xprofd ended: ' + ''.join(d.lines[-20:])
    finally:
        d.stop()
    m = re.search(r'(\d+) passed, (\d+) failed(?:, (\d+) skipped)?', text)
    assert m, text[-3000:]
    return int(m.group(1)), int(m.group(2)), int(m.group(3) or 0), text


def test_the_recorded_answers(python, shared, tmp_path):
    logdir = str(tmp_path / 'logs')
    subprocess.run([python, os.path.join(shared, 'oracle', 'oracle.py'), 'unpack', os.path.join(shared, 'data', 'profiles'), logdir],
                   check=True, stdout=subprocess.DEVNULL, timeout=120)
    options = [x for t in TOOLS for x in ('--tool', t)]
    passed, failed, skipped, text = check(python, shared, logdir, os.path.join(shared, 'golden', 'http'), *options)
    assert (passed, failed, skipped) == (TOTAL, 0, 0), text[-6000:]


def test_a_profile_above_half_a_million_events(python, shared, tmp_path):
    """The visibility layers, which run only for large profiles. The profile takes seconds to make: it is kept in BUILD."""
    cache = os.path.join(daemon.BUILD, 'oracle-large')
    run = os.path.join(cache, 'plugins', 'profile', 'syn_large')
    made = os.path.isdir(run) and any(os.path.getsize(os.path.join(run, f)) > LARGE_BYTES for f in os.listdir(run))
    if not made:
        shutil.rmtree(cache, ignore_errors=True)
        new = str(tmp_path / 'new')
        subprocess.run([python, os.path.join(shared, 'data', 'make_profile.py'), '--out', new, '--run', 'syn_large',
                        '--target-size', '24MB', '--python-events', '200'], check=True, stdout=subprocess.DEVNULL, timeout=600)
        shutil.move(new, cache)
    passed, failed, skipped, text = check(python, shared, cache, os.path.join(shared, 'golden', 'large'))
    assert (passed, failed, skipped) == (LARGE, 0, 0), text[-6000:]
