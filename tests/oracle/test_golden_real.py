"""XProf's answers about the real captures and the generated TPU profiles against ours: all tools, every program of these
profiles as text and as graphs. tests/golden/real/README.md says what is kept of an answer, deviations.md what is not compared
and why. The floor is in expected.json, under `real TOOL`.
"""
import copy
import json
import os
import re
import subprocess

import daemon
import pytest

from test_oracle import floor_of

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 600  # 15 s on a machine that does nothing else


@pytest.fixture(scope='session')
def real(shared):
    """The module that reads what was recorded; it imports the oracle, so that it is there only where the oracle is."""
    for folder in ('real', os.path.join('tpu', 'profiles')):
        if not os.path.isdir(os.path.join(shared, 'data', folder)):
            pytest.skip('no profiles at %s/data/%s (set SHARED_DIR): what XProf said of them is not checked' % (shared, folder))
    import golden_real
    return golden_real


def test_all_answers_about_real_profiles_agree(real, python, tmp_path):
    logdir = str(tmp_path / 'logs')
    real.unpack(logdir)
    d = daemon.Daemon('--logdir', logdir)
    try:
        done = subprocess.run([python, os.path.join(HERE, 'golden_real.py'), 'http://127.0.0.1:%d' % d.port],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
        assert d.alive(), 'xprofd ended: ' + ''.join(d.lines[-20:])
    finally:
        d.stop()
    text = done.stdout.decode('utf8', 'replace')
    counts = {'real ' + t: (int(equal), int(other)) for t, equal, other in re.findall(r'^(\S+) +(\d+) +(\d+)$', text, re.M)}
    assert counts, text[-3000:]
    floor_of(counts, lambda t: t.startswith('real '), text)


def places(value, path=()):
    """The path to each number and text in an answer."""
    if isinstance(value, dict):
        for k in value:
            yield from places(value[k], path + (k,))
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from places(v, path + (i,))
    elif isinstance(value, (int, float, str)) and not isinstance(value, bool):
        yield path


def test_a_digest_notices_each_value_that_changes(real):
    table = {'cols': [{'id': 'operation', 'type': 'string'}, {'id': 'time', 'type': 'number'}, {'id': 'rank', 'type': 'number'}],
             'rows': [{'c': [{'v': 'op%d' % i}, {'v': 1.5 * i}, {'v': i}]} for i in range(200)]}
    trace = {'fullTimespan': [0, 2.5], 'traceEvents': [
        {'ph': 'X', 'pid': 1, 'tid': 2, 'name': 'a', 'ts': 0.5, 'dur': 2, 'args': {'n': 3}},
        {'ph': 'X', 'pid': 1, 'tid': 3, 'name': 'b', 'ts': 1.25, 'dur': 1, 'args': {}, 'bind_id': 7}]}
    tree = {'name': 'root', 'children': [{'name': 'x', 'flops': 2}, {'name': 'y', 'flops': 3.5}]}
    for mode, tool, answer in (('tables', 'framework_op_stats', [table]), ('trace', 'trace_viewer@', trace),
                               ('op_profile', 'op_profile', tree)):
        request = {'mode': mode, 'tool': tool, 'run': '', 'query': []}
        before = json.dumps(real.digest(request, copy.deepcopy(answer)), sort_keys=True)
        for path in places(answer):
            if path[-1] == 'bind_id':
                continue  # which number a flow has is free; that it joins others is not
            changed = copy.deepcopy(answer)
            at = changed
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = at[path[-1]] + 'x' if isinstance(at[path[-1]], str) else at[path[-1]] + 0.125
            assert json.dumps(real.digest(request, changed), sort_keys=True) != before, path
