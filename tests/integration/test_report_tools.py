"""The report `tools`: which tools have something to say about a run, and for the others why not; and of these
`kernel_utilization`, the inside of custom kernels, held against what the generator of the profiles wrote and what a reader of
our own finds in a real capture."""
import collections
import gzip
import json
import os
import shutil
import struct

import daemon
import pytest
import xspace

SHARED = os.path.abspath(os.environ.get('SHARED_DIR') or os.path.join(daemon.ROOT, '..', 'shared'))
TPU = os.path.join(SHARED, 'data', 'tpu', 'profiles')
PALLAS = os.path.join(SHARED, 'data', 'real', 'tpu_v6e_pallas_kernel.xplane.pb')
KERNELS = ('pallas_v5e', 'pallas_v6e')
needs_data = pytest.mark.skipif(not os.path.isdir(TPU), reason='no profiles at %s (set SHARED_DIR)' % TPU)

RUNS = {
    'host_only': [xspace.plane('/host:CPU', ['train'], {'main': [(0, 0, 10, 'a')]})],
    'gpu': [xspace.plane('/device:GPU:0', ['kernel'], {'Stream #1': [(0, 0, 10, 'a')]})],
    'idle_tpu': [xspace.plane('/device:TPU:0', ['fusion.1'], {'XLA Ops': []})],
    'two_hosts': [xspace.plane('/host:CPU', ['MemoryAllocation'], {'main': [(0, 0, 10, 'a')]}),
                  xspace.plane('/device:TPU:0', ['fusion.1'], {'XLA Ops': [(0, 0, 10, 'a')]})],
    'serving': [xspace.plane('/host:CPU', ['BatchingSessionRun', 'MegaScale: x'], {'main': [(0, 0, 10, 'a')]})],
}
NOISE = bytes((i * 7919) & 255 for i in range(4000))
RUNS['one_of_two'] = [RUNS['two_hosts'][1], NOISE]
RUNS['noise'] = [NOISE]
ALWAYS = {'overview_page', 'trace', 'framework_op_stats', 'input_pipeline_analyzer'}
DEVICE = {'smart_suggestion', 'op_profile', 'hlo_stats', 'roofline_model', 'pod_viewer'}


@pytest.fixture(scope='module')
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp('logs')
    for run, hosts in RUNS.items():
        (folder / run).mkdir()
        for i, data in enumerate(hosts):
            (folder / run / ('host-%d.xplane.pb' % i)).write_bytes(data)
    for run in KERNELS:
        if os.path.isdir(os.path.join(TPU, run)):
            shutil.copytree(os.path.join(TPU, run), folder / run, ignore=shutil.ignore_patterns('*.json'))
    if os.path.exists(PALLAS):
        (folder / 'pallas').mkdir()
        shutil.copy(PALLAS, folder / 'pallas' / 'host-0.xplane.pb')
    d = daemon.Daemon('--logdir', str(folder))
    yield d
    d.stop()


def tools_of(d, run, **args):
    r = d.api('report', run=run, tool='tools', **args)
    assert r.status == 200, (run, r)
    table = r.json()['tables'][0]
    assert [c['id'] for c in table['columns']] == ['tool', 'title', 'available', 'reason']
    return {row[0]: row for row in table['rows']}


@pytest.mark.parametrize('run, more', [
    ('host_only', set()), ('gpu', DEVICE | {'kernel_stats'}), ('idle_tpu', set()),
    ('two_hosts', DEVICE | {'memory_profile'}), ('serving', {'inference_profile', 'megascale_stats'}),
])
def test_a_tool_is_there_when_the_run_has_what_it_is_made_from(served, run, more):
    tools = tools_of(served, run)
    assert {t for t, row in tools.items() if row[2]} == ALWAYS | more
    for tool, title, available, reason in tools.values():
        assert title and (reason is None) == available, (tool, reason)
        assert available or len(reason) > 10, tool


def test_only_the_hosts_that_are_asked_for_count(served):
    assert not tools_of(served, 'two_hosts', host='host-0')['hlo_stats'][2]
    assert tools_of(served, 'two_hosts', host='host-1')['hlo_stats'][2]


@pytest.mark.parametrize('tool', sorted(DEVICE | ALWAYS - {'trace'} | {
    'kernel_stats', 'memory_profile', 'memory_viewer', 'graph_viewer', 'inference_profile', 'megascale_stats',
    'utilization_viewer', 'kernel_utilization', 'perf_counters', 'tools'}))
def test_a_host_that_cannot_be_read_is_missing_from_every_report(served, tool):
    r = served.api('report', run='one_of_two', tool=tool)
    assert r.status == 200, r
    assert r.json()['hosts'] == ['host-0'] and [h['host'] for h in r.json()['missing_hosts']] == ['host-1']
    r = served.api('report', run='noise', tool=tool)
    assert r.status >= 400 and r.json()['detail'], r
    assert served.alive()


def test_xprof_knows_no_such_tool(served):
    r = served.get('/data/plugin/profile/data?run=gpu&tag=tools&host=host-0')
    assert r.status == 404, r


# --- the inside of custom kernels ---


class Event:
    """What an event says of itself is read when it is asked for."""

    def __init__(self, b, base, names, stats):
        self.b, self.stats = b, stats
        e = {}
        for f, v in xspace.fields(b):
            if f == 4:
                break
            e[f] = v
        self.name, self.begin, self.time = names.get(e.get(1), ''), base + xspace.signed(e.get(2, 0)), xspace.signed(e.get(3, 0))
        self.end = self.begin + self.time

    def stat(self, name):
        for f, v in xspace.fields(self.b):
            if f == 4:
                got = dict(xspace.fields(v))
                if self.stats.get(got.get(1)) == name:
                    return self.stats.get(got[7], '') if 7 in got else next(got[n] for n in (2, 3, 4, 5) if n in got)
        return None


def lines_of(path, wanted):
    """Lines of the first TPU whose names end so."""
    with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as f:
        planes = [v for k, v in xspace.fields(f.read()) if k == 1]
    lines = {}
    for plane in planes:
        fields = list(xspace.fields(plane))
        if dict(fields).get(2) != b'/device:TPU:0':
            continue
        names, stats = {}, {}
        for f, v in fields:
            if f in (4, 5):
                meta = dict((k, x) for k, x in xspace.fields(dict(xspace.fields(v))[2]) if k in (1, 2, 4))
                (names if f == 4 else stats)[meta.get(1, 0)] = (meta.get(4) or meta.get(2, b'')).decode()
        for line in (v for f, v in fields if f == 3):
            head = dict((f, v) for f, v in xspace.fields(line) if f in (2, 3))
            if head[2].decode().endswith(wanted):
                base = xspace.signed(head.get(3, 0)) * 1000
                lines[head[2].decode()] = [Event(v, base, names, stats) for f, v in xspace.fields(line) if f == 4]
    return lines


def kernel(d, run, **args):
    r = d.api('report', run=run, tool='kernel_utilization', **args)
    assert r.status == 200, (run, args, r)
    assert len(r.body) < 2 << 20
    return r.json()


def rows(doc, table):
    t = next((t for t in doc['tables'] if t['id'] == table), {'rows': []})
    return [dict(zip((c['id'] for c in t['columns']), row)) for row in t['rows']]


def values(doc):
    return {m['id']: m['value'] for m in doc['metrics']}


def united(spans):
    total, until = 0, -1 << 62
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def inside(events, run):
    return [e for e in events if run['first_begin_ps'] <= e.begin < run['first_begin_ps'] + run['duration_ps']]


@needs_data
@pytest.mark.parametrize('run', KERNELS)
def test_kernels_are_as_many_and_as_slow_as_the_generator_says(served, run):
    with open(os.path.join(TPU, run, 'truth.json'), encoding='utf8') as f:
        truth = json.load(f)
    calls = {c['op']: c for c in rows(kernel(served, run), 'calls')}
    slow = {o['op']: o for o in truth['slowest_ops'] if o['category'] == 'custom-call'}
    assert slow and set(slow) <= set(calls)
    for op, o in slow.items():
        assert calls[op]['occurrences'] == o['occurrences_all_cores'] and calls[op]['target'] == 'tpu_custom_call'
        assert calls[op]['time'] / 1e9 == pytest.approx(o['total_ms_all_cores'], rel=1e-3)
        assert calls[op]['tf_op'].rstrip(':') == o['tf_op']
    for op, n in truth['llo_instruction_events_per_core'].items():
        doc = kernel(served, run, kernel=op)
        assert values(doc)['kernel_name'] == op
        assert values(doc)['kernel_instructions'] == n == sum(o['count'] for o in rows(doc, 'opcodes')) == sum(s['count'] for s in rows(doc, 'sources'))


@needs_data
def test_units_bundles_sources_and_regions_are_those_of_the_profile(served):
    lines = lines_of(os.path.join(TPU, 'pallas_v6e', 'tpu-job-w-0.xplane.pb.gz'), (' Instructions', 'Pallas Primitives'))
    doc = kernel(served, 'pallas_v6e', kernel='tiled_matmul.5')
    shown = next(r for r in rows(doc, 'runs') if r['shown'])
    mine = {name: inside(events, shown) for name, events in lines.items()}
    regions = collections.Counter(e.name for e in mine.pop('Pallas Primitives'))
    assert regions == {r['region']: r['count'] for r in rows(doc, 'regions')}
    everything = [e for events in mine.values() for e in events]
    assert {u['unit'] + ' Instructions': u['instructions'] for u in rows(doc, 'unit_times')} == {n: len(v) for n, v in mine.items() if v}
    for u in rows(doc, 'unit_times'):
        assert u['busy'] == united((e.begin, e.end) for e in mine[u['unit'] + ' Instructions']), u
    assert values(doc)['kernel_bundles'] == len({e.begin for e in everything})
    bundles = collections.Counter(number for number, _ in {(e.stat('bundle_number'), e.begin) for e in everything})
    assert all(bundles[b['bundle']] == b['runs'] for b in rows(doc, 'bundles'))
    told = collections.Counter()
    for s in rows(doc, 'sources'):
        told[s['source'], s['primitive']] += s['count']
    assert told == collections.Counter((e.stat('source_info'), e.stat('pallas_primitive')) for e in everything)


@needs_data
@pytest.mark.parametrize('run', KERNELS + ('pallas',))
def test_causes_of_a_run_add_up_to_it_and_so_do_its_charts(served, run):
    for call in rows(kernel(served, run), 'calls'):
        doc = kernel(served, run, kernel=call['op'])
        took = values(doc)['kernel_run_time']
        stalls = rows(doc, 'stalls')
        assert sum(s['time'] or 0 for s in stalls) == took
        assert all((s['time'] is None) == bool(s['reason']) for s in stalls)
        series = {s['id']: s for s in doc['series']}
        told = {s['cause']: s['time'] for s in stalls}
        assert ('cause_bins' in series) == (call['recorded'] > 0)
        for i, name in enumerate(series['cause_bins']['names'] if call['recorded'] else []):
            in_chart = sum(p[i + 1] for p in series['cause_bins']['points'])
            assert in_chart <= told[name] if name == 'Not recorded' else in_chart == told[name]
        for u in rows(doc, 'unit_times'):
            assert u['share'] is None or 0 <= u['share'] <= 1


@pytest.mark.skipif(not os.path.exists(PALLAS), reason='no real capture')
def test_a_real_capture_tells_what_its_kernel_waited_for(served):
    lines = lines_of(PALLAS, ('XLA Ops', 'XLA TraceMe', 'Tensor Core', '_counters_'))
    assert tools_of(served, 'pallas')['kernel_utilization'][2]
    for n in (1, 2, 3):
        doc = kernel(served, 'pallas', kernel='matmul_optimized.1', occurrence=n)
        shown = next(r for r in rows(doc, 'runs') if r['shown'])
        assert shown['occurrence'] == n and shown['first_begin_ps'] == sorted(e.begin for e in lines['XLA Ops'])[n - 1]
        regions = collections.defaultdict(int)
        for e in inside(lines['XLA TraceMe'], shown):
            regions[e.name] += e.time
        causes = {s['id']: s['time'] for s in rows(doc, 'stalls')}
        assert causes['dma_in'] == regions['ep_wait_in']
        assert causes['dma_out'] == regions['ep_wait_out'] + regions['ep_finalize']
        assert causes['work'] is None
        assert {r['name']: r['time'] for r in rows(doc, 'regions')} == regions
        assert sum(c['time'] for c in rows(doc, 'code')) == shown['duration_ps']
        assert sum(c['runs'] for c in rows(doc, 'code')) == 1 + len(inside(lines['Tensor Core'], shown))
        end = shown['first_begin_ps'] + shown['duration_ps']
        mxu = [(struct.unpack('<d', e.stat('% util'))[0] / 100, min(e.end, end) - e.begin)
               for e in inside(lines['_counters_'], shown) if e.name == 'MXU']
        units = {u['unit']: u['schedule'] for u in rows(doc, 'unit_times')}
        assert units['MXU'] == pytest.approx(sum(v * t for v, t in mxu) / shown['duration_ps'])
        assert units['XLU'] == 0  # told once, as 0, before the first trace point
    for bad in ({'kernel': 'nothing'}, {'kernel': 'matmul_optimized.1', 'occurrence': 4}, {'occurrence': 'x'}, {'program_id': 'x'}, {'on': 'nowhere'}):
        r = served.api('report', run='pallas', tool='kernel_utilization', **bad)
        assert r.status == 400 and r.json()['detail'], (bad, r)
    assert values(kernel(served, 'pallas', prefer='fusion.1'))['kernel_name'] == 'matmul_optimized.1'


@needs_data
def test_a_part_of_a_run_is_told_as_a_range(served):
    whole = kernel(served, 'pallas_v6e', kernel='tiled_matmul.4')
    begin = next(r for r in rows(whole, 'runs') if r['shown'])['first_begin_ps']
    doc = kernel(served, 'pallas_v6e', kernel='tiled_matmul.4', t0=begin + 100000, t1=begin + 300000)
    assert doc['range']['t0'] == begin + 100000
    assert values(doc)['kernel_run_time'] == 200000 and values(doc)['kernel_recorded_fraction'] == 1
    assert [c['occurrences'] for c in rows(doc, 'calls')] == [0]  # it begins before
    assert sum(s['time'] or 0 for s in rows(doc, 'stalls')) == 200000
