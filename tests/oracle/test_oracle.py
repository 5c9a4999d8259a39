"""XProf's recorded answers against ours: 1,698 requests of its routes and tools, 20 of its pages, and 36 for a profile
above half a million events.

expected.json is the floor: how many answers of each tool agree. It may only grow; with ORACLE_KEEP=1 a run that finds
more writes it. deviations.md lists where these answers are not the right ones, and where ours shows those.
"""
import glob
import json
import os
import re
import shutil
import subprocess

import daemon
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOOR = os.path.join(HERE, 'expected.json')
# The routes and tools of the timeline: nothing less than all of their answers will do.
WHOLE = ['trace_viewer@', 'trace_viewer', 'hosts', 'runs', 'run_tools', 'module_list', 'config', 'version']
WHOLE_TOTAL = 677
STATIC_TOTAL = 20
LARGE = 36
LARGE_BYTES = 10 << 20
LIMIT_S = 600  # a third of a minute on a machine that does nothing else


@pytest.fixture(scope='session')
def static():
    """The folder xprof/static of an installed xprof 2.24.2."""
    venv = os.path.join(ROOT, '.venv')
    for place in (os.environ.get('XPROF_STATIC'), os.path.join(venv, 'xprof-static', 'xprof', 'static'),
                  *glob.glob(os.path.join(venv, 'lib', 'python3*', 'site-packages', 'xprof', 'static'))):
        if place and os.path.exists(os.path.join(place, 'index.html')):
            return place
    pytest.skip('no pages of XProf (set XPROF_STATIC, or XPROF_STATIC_INSTALL=1 .ci/install): they are not compared')


@pytest.fixture(scope='session')
def logdir(python, shared, tmp_path_factory):
    root = str(tmp_path_factory.mktemp('oracle') / 'logs')
    subprocess.run([python, os.path.join(shared, 'oracle', 'oracle.py'), 'unpack', os.path.join(shared, 'data', 'profiles'), root],
                   check=True, stdout=subprocess.DEVNULL, timeout=120)
    return root


def check(python, shared, logdir, golden, tools=(), flags=()):
    """-> ({tool: (matched, not matched)}, what the oracle said)"""
    only = [x for t in tools for x in ('--tool', t)]
    d = daemon.Daemon('--logdir', logdir, *flags)
    try:
        done = subprocess.run([python, os.path.join(shared, 'oracle', 'oracle.py'), 'check', 'http://127.0.0.1:%d' % d.port,
                               os.path.join(shared, 'golden', golden), '--logdir', logdir, '--jobs', '2', *only],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
        text = done.stdout.decode('utf8', 'replace')
        assert d.alive(), 'xprofd ended: ' + ''.join(d.lines[-20:])
    finally:
        d.stop()
    rows = re.findall(r'^(\S+) +(\d+) +(\d+) +(\d+) +(\d+)$', text, re.M)
    assert rows, text[-3000:]
    return {t: (int(m), int(a) + int(b) + int(c)) for t, m, a, b, c in rows}, text


@pytest.fixture(scope='session')
def answers(python, shared, logdir):
    """All of XProf's routes and tools, without its pages."""
    with open(os.path.join(shared, 'golden', 'http', 'index.json'), encoding='utf8') as f:
        tools = {r['tool'] for r in json.load(f)['requests']} - {'static'}
    return check(python, shared, logdir, 'http', sorted(tools))


def test_all_answers_of_the_timeline_agree(answers):
    counts, text = answers
    assert sum(counts[t][0] for t in WHOLE) == WHOLE_TOTAL, text[-6000:]
    assert not [t for t in WHOLE if counts[t][1]], text[-6000:]


def floor_of(counts, part, text):
    """counts against those of expected.json that part (a function of the name) chooses."""
    with open(FLOOR, encoding='utf8') as f:
        floor = json.load(f)
    mine = {t: n for t, n in floor.items() if part(t)}
    assert set(counts) == set(mine)
    assert not [t for t, n in mine.items() if n > sum(counts[t])], 'the floor is above what there is'
    below = {t: '%d, the floor is %d' % (counts[t][0], n) for t, n in mine.items() if counts[t][0] < n}
    assert not below, '%s\n%s' % (below, text[-6000:])
    floor.update({t: max(n, counts[t][0]) for t, n in mine.items()})
    if os.environ.get('ORACLE_KEEP'):
        with open(FLOOR, 'w', encoding='utf8') as f:
            f.write(json.dumps(floor, indent=1, sort_keys=True) + '\n')


def test_no_tool_falls_below_its_floor(answers):
    counts, text = answers
    floor_of(counts, lambda t: t != 'large' and not t.startswith('real '), text)


def test_xprofs_own_pages(python, shared, logdir, static):
    counts, text = check(python, shared, logdir, 'http', ['static'], ['--ui', 'stock=' + static])
    assert counts == {'static': (STATIC_TOTAL, 0)}, text[-6000:]


def test_a_profile_above_half_a_million_events(python, shared, tmp_path):
    """The visibility layers, which run only for large profiles. The profile takes seconds to make: it is kept in BUILD."""
    cache = os.path.join(daemon.BUILD, 'oracle-large')
    run = os.path.join(cache, 'plugins', 'profile', 'syn_large')
    made = os.path.isdir(run) and any(os.path.getsize(os.path.join(run, f)) > LARGE_BYTES for f in os.listdir(run))
    if not made:
        shutil.rmtree(cache, ignore_errors=True)
        new = str(tmp_path / 'new')
        subprocess.run([python, os.path.join(shared, 'data', 'make_profile.py'), '--out', new, '--run', 'syn_large',
                        '--target-size', '24MB', '--python-events', '200'], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)
        shutil.move(new, cache)
    counts, text = check(python, shared, cache, 'large')
    matched, other = (sum(x) for x in zip(*counts.values()))
    assert matched + other == LARGE
    floor_of({'large': (matched, other)}, lambda t: t == 'large', text)
