"""Reports about a part of a run, t0 to t1 or some steps: what is counted and cut how, that parts add up, that all tools
agree, and that a range that is none is refused with a sentence."""
import json
import os
import re
import shutil
import subprocess

import daemon
import pytest
from xspace import block, number

SHARED = os.path.abspath(os.environ.get('SHARED_DIR') or os.path.join(daemon.ROOT, '..', 'shared'))
TPU = os.path.join(SHARED, 'data', 'tpu', 'profiles')
SAMPLES = os.path.join(SHARED, 'data', 'profiles')
TAKEN = ['train_v5e', 'barrier_v5e_2host', 'offload_v6e', 'input_bound_v5e']
TAKEN_SAMPLES = ['synth_gpu_train', 'jax_cpu_train']
needs_data = pytest.mark.skipif(not os.path.isdir(TPU), reason='no profiles at %s (set SHARED_DIR)' % TPU)
WHOLE = {'memory_viewer', 'graph_viewer'}  # about programs

with open(os.path.join(daemon.ROOT, 'shard', 'tools', 'tools.def'), encoding='utf8') as tools_def:
    TOOLS = re.findall(r'^TOOL\(\w+, "([^"]+)"', tools_def.read(), re.M)

NS = 1000


def stat(meta, v):
    return number(1, meta) + (block(5, v) if isinstance(v, str) else number(4, v))


def device():
    """A core with four steps of 100 ns each, in ns: while.1 [10, 90) around fusion.1 [20, 40) and fusion.2 [40, 80)."""
    names = ['while.1', 'fusion.1', 'fusion.2', '0', '1', '2', '3', 'jit_f(7)']
    kinds = {'while.1': 'while', 'fusion.1': 'loop fusion', 'fusion.2': 'loop fusion'}
    stats = {1: 'program_id', 2: 'symbol_id', 3: 'hlo_category', 4: 'flops', 5: 'bytes_accessed'}
    ops, steps, modules = [], [], []
    for i in range(4):
        ops += [(0, 100 * i + 10, 80), (1, 100 * i + 20, 20), (2, 100 * i + 40, 40)]
        steps += [(3 + i, 100 * i, 100)]
        modules += [(7, 100 * i + 5, 90)]
    b = number(1, 1) + block(2, '/device:TPU:0')
    for k, (line, events) in enumerate((('Steps', steps), ('XLA Modules', modules), ('XLA Ops', ops))):
        b += block(3, number(1, k + 1) + block(2, line) + b''.join(
            block(4, number(1, m + 1) + number(2, at * NS) + number(3, d * NS)) for m, at, d in events))
    for i, n in enumerate(names):
        meta = number(1, i + 1) + block(2, n)
        if n in kinds:
            for s in (stat(1, 7), stat(2, i + 1), stat(3, kinds[n]), stat(4, 0 if i == 0 else 1000 * i), stat(5, 64)):
                meta += block(5, s)
        b += block(4, number(1, i + 1) + block(2, meta))
    for i, n in stats.items():
        b += block(5, number(1, i) + block(2, number(1, i) + block(2, n)))
    return block(1, b)


@pytest.fixture(scope='module')
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp('ranges')
    for folder in [os.path.join(TPU, n) for n in TAKEN] + [os.path.join(SAMPLES, n) for n in TAKEN_SAMPLES]:
        if os.path.isdir(folder):
            shutil.copytree(folder, root / os.path.basename(folder), ignore=shutil.ignore_patterns('*.json'))
    (root / 'hand').mkdir()
    (root / 'hand' / 'h.xplane.pb').write_bytes(device())
    d = daemon.Daemon('--logdir', str(root))
    d.root = str(root)
    yield d
    d.stop()


def report(d, run, tool, **args):
    r = d.api('report', run=run, tool=tool, **args)
    assert r.status in (200, 400, 404), (run, tool, r)
    return r.json() if r.status == 200 else None


def metrics(doc):
    return {m['id']: m['value'] for m in doc['metrics']}


def rows(doc, id_='ops'):
    t = next(t for t in doc['tables'] if t['id'] == id_)
    return [dict(zip((c['id'] for c in t['columns']), row)) for row in t['rows']]


def ops(d, run, **args):
    return {(r['program_id'], r['op']): r for r in rows(report(d, run, 'hlo_stats', limit=100000, **args))}


def body(doc):
    return {k: v for k, v in doc.items() if k != 'range'}


# --- by hand ---


def test_times_are_cut_and_what_begins_in_the_range_counts(served):
    got = {k[1]: v for k, v in ops(served, 'hand', t0=30 * NS, t1=160 * NS).items()}
    want = {  # in ns: self time, time, begins
        'while.1': (10 + 10, 60 + 50, 1),
        'fusion.1': (10 + 20, 30, 1),
        'fusion.2': (40 + 20, 60, 2),
    }
    assert {k: (v['self_time'] / NS, v['time'] / NS, v['occurrences']) for k, v in got.items()} == want
    m = metrics(report(served, 'hand', 'overview_page', t0=30 * NS, t1=160 * NS))
    assert m['device_time'] == (60 + 50) * NS and m['idle_fraction'] == pytest.approx(1 - 110 / 130)
    assert m['flop_rate'] == pytest.approx((1000 + 2 * 2000) / (130 * NS / 1e12))


def test_steps_are_those_wholly_inside_or_there_are_none(served):
    doc = report(served, 'hand', 'overview_page', t0=50 * NS, t1=350 * NS)
    m = metrics(doc)
    assert m['steps'] == 2 and m['step_time_mean'] == 100 * NS
    assert [s['step'] for s in rows(doc, 'steps')] == [1, 2]
    doc = report(served, 'hand', 'overview_page', t0=50 * NS, t1=150 * NS)
    step = next(x for x in doc['metrics'] if x['id'] == 'step_time_mean')
    assert step['value'] is None and 'wholly' in step['reason']
    assert metrics(doc)['idle_fraction'] == pytest.approx(0.2)


def test_a_pause_of_the_device_is_idle_and_no_error(served):
    m = metrics(report(served, 'hand', 'overview_page', t0=92 * NS, t1=108 * NS))
    assert m['idle_fraction'] == 1 and m['flop_rate'] is None


def test_the_window_ends_where_the_device_was_no_longer_watched(served):
    m = metrics(report(served, 'hand', 'overview_page', t0=300 * NS, t1=10 ** 15))
    assert m['idle_fraction'] == pytest.approx(0.2) and m['device_time'] == 80 * NS


@pytest.mark.parametrize('cut', [0, 1, 15, 20, 30, 40, 79, 80, 90, 100, 250])
def test_two_parts_add_up(served, cut):
    a, b, c = 5 * NS, (5 + cut) * NS if cut else 6 * NS, 399 * NS
    one, two, both = (ops(served, 'hand', t0=x, t1=y) for x, y in ((a, b), (b, c), (a, c)))
    for op, r in both.items():
        for column in ('self_time', 'time', 'occurrences'):
            assert r[column] == sum(part[op][column] for part in (one, two) if op in part), (op, column)


# --- steps, the whole, all tools ---


def test_the_document_says_what_it_is_about(served):
    assert report(served, 'hand', 'overview_page')['range'] is None
    assert report(served, 'hand', 'overview_page', steps='1-2')['range'] == \
        {'t0': 100 * NS, 't1': 300 * NS, 'steps': '1-2', 'label': 'steps 1 to 2'}
    assert report(served, 'hand', 'overview_page', steps='3')['range']['label'] == 'step 3'
    assert report(served, 'hand', 'overview_page', t0=100 * NS, t1=2500 * NS)['range'] == \
        {'t0': 100 * NS, 't1': 2500 * NS, 'steps': None, 'label': '100 ns to 2.5 us'}


@needs_data
@pytest.mark.parametrize('run, steps', [('hand', '1-2'), ('train_v5e', '101-102'), ('offload_v6e', None), ('synth_gpu_train', None)])
def test_steps_are_the_time_that_they_took(served, run, steps):
    numbers = [s['step'] for s in rows(report(served, run, 'overview_page'), 'steps')]
    steps = steps or '%d-%d' % (numbers[1], numbers[-2])
    for tool in TOOLS:
        by_steps = report(served, run, tool, steps=steps)
        if by_steps is None or tool in WHOLE:
            continue
        at = by_steps['range']
        assert body(by_steps) == body(report(served, run, tool, t0=at['t0'], t1=at['t1'])), tool


@needs_data
@pytest.mark.parametrize('run', ['hand'] + TAKEN + TAKEN_SAMPLES)
def test_a_range_that_holds_everything_is_no_range(served, run):
    for tool in TOOLS:
        whole = report(served, run, tool)
        if whole:
            ranged = report(served, run, tool, t0=-10 ** 17, t1=10 ** 18)
            ranged['notes'] = [n for n in ranged['notes'] if n['code'] != 'range_ignored']
            assert body(ranged) == body(whole), tool


@needs_data
@pytest.mark.parametrize('run', TAKEN + TAKEN_SAMPLES)
def test_a_metric_has_one_value_in_every_tool_about_a_range(served, run):
    whole = report(served, run, 'overview_page')
    steps = [s['step'] for s in rows(whole, 'steps')]
    seen = {}
    for tool in TOOLS:
        doc = report(served, run, tool, steps='%d-%d' % (steps[0], steps[len(steps) // 2]))
        if doc is None or tool in WHOLE:
            continue
        for m in doc['metrics']:
            first = seen.setdefault(m['id'], (tool, m))
            assert [m[k] for k in ('value', 'reason')] == [first[1][k] for k in ('value', 'reason')], (m['id'], tool, first[0])
    assert seen['steps'][1]['value'] == len(steps) // 2 + 1
    assert seen['hosts'][1]['value'] == metrics(whole)['hosts']


@needs_data
@pytest.mark.parametrize('run', ['train_v5e', 'offload_v6e', 'synth_gpu_train'])
def test_parts_of_a_profile_add_up(served, run):
    at = report(served, run, 'overview_page', steps='%d-%d' % tuple(
        rows(report(served, run, 'overview_page'), 'steps')[i]['step'] for i in (0, -1)))['range']
    a, c = at['t0'] + 1, at['t1'] - 1
    b = a + (c - a) * 2 // 5
    one, two, both = (ops(served, run, t0=x, t1=y) for x, y in ((a, b), (b, c), (a, c)))
    assert len(both) > 3
    for op, r in both.items():
        for column in ('self_time', 'time', 'occurrences'):
            assert r[column] == sum(part[op][column] for part in (one, two) if op in part), (op, column)
    times = [metrics(report(served, run, 'overview_page', t0=x, t1=y))['device_time'] for x, y in ((a, b), (b, c), (a, c))]
    assert times[0] + times[1] == times[2]


@needs_data
def test_each_step_is_what_the_generator_did(served):
    with open(os.path.join(TPU, 'train_v5e', 'truth.json'), encoding='utf8') as f:
        truth = json.load(f)
    flops = truth['modules'][0]['flops_per_execution_per_core'] * truth['cores']
    for s in truth['steps_of_core_0'][:-1]:  # the last one ends with the capture
        m = metrics(report(served, 'train_v5e', 'overview_page', steps=s['step']))
        assert m['steps'] == 1 and m['device_time'] / truth['cores'] == pytest.approx(s['busy_ps'], rel=0.002)
        assert m['idle_fraction'] == pytest.approx(s['idle_ps'] / (s['idle_ps'] + s['busy_ps']), abs=0.002)
        window = m['device_time'] / (1 - m['idle_fraction'])
        assert m['flop_rate'] * window / 1e12 == pytest.approx(flops, rel=0.01)


@needs_data
def test_each_host_has_its_own_times_of_a_step(served):
    whole, doc = (report(served, 'barrier_v5e_2host', 'overview_page', **a) for a in ({}, {'steps': '102'}))
    of = {s['step']: s for s in rows(whole, 'steps')}
    assert rows(doc, 'steps') == [of[102]] and metrics(doc)['step_time_mean'] == of[102]['time']
    assert len(doc['hosts']) == 2 and doc['range']['t1'] - doc['range']['t0'] >= of[102]['time']


# --- what is no range, and who does not care ---


@pytest.mark.parametrize('args, word', [
    ({'t0': 5}, 'go together'), ({'t0': 9, 't1': 9}, 'not before'), ({'t0': 9, 't1': 3}, 'not before'),
    ({'t0': 'NaN', 't1': 3}, 'whole number'), ({'t0': '1e3', 't1': 3000}, 'whole number'), ({'t0': 0, 't1': 10 ** 30}, 'whole number'),
    ({'t0': 10 ** 12, 't1': 10 ** 13}, 'outside'), ({'t0': -50, 't1': -5}, 'outside'), ({'steps': '4'}, 'steps 0 to 3'),
    ({'steps': '9-5'}, 'ends before'), ({'steps': 'x'}, 'step number'), ({'steps': '1-'}, 'step number'), ({'steps': '-1'}, 'step number'),
    ({'steps': '1-2-3'}, 'step number'), ({'steps': '9' * 30}, 'step number'), ({'steps': '1', 't0': 0, 't1': 9}, 'one of them')])
def test_what_is_no_range_is_refused_with_a_sentence(served, args, word):
    for op in ('report', 'report_csv'):
        r = served.api(op, run='hand', tool='hlo_stats', **args)
        assert r.status == 400 and r.json()['code'] == 'bad_request' and word in r.json()['detail'], r.json()


@needs_data
def test_tools_about_programs_say_that_they_are_about_the_whole_run(served):
    for tool in sorted(WHOLE):
        doc = report(served, 'train_v5e', tool, steps='101')
        assert doc['range'] is None and [n['text'] for n in doc['notes'] if n['code'] == 'range_ignored'], tool
        assert served.api('report', run='train_v5e', tool=tool, t0=9, t1=3).status == 400


def test_a_table_and_the_command_line_are_about_the_range_too(served):
    csv = served.api('report_csv', run='hand', tool='hlo_stats', steps='1').body
    assert csv != served.api('report_csv', run='hand', tool='hlo_stats').body
    for words in (['--steps', '1'], ['--t0=%d' % (100 * NS), '--t1', str(200 * NS)]):
        done = subprocess.run([daemon.XPROFD, 'query', os.path.join(served.root, 'hand'), 'hlo_stats', '--csv', *words],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode == 0 and done.stdout == csv
    text = subprocess.run([daemon.XPROFD, 'query', os.path.join(served.root, 'hand'), 'hlo_stats', '--table', '--steps', '1'],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60, check=False).stdout.decode('utf8')
    assert re.search(r'^Range: .* \(t0=%d t1=%d steps=1\)$' % (100 * NS, 200 * NS), text, re.M), text[:400]
