"""Reports of rare events and single modules over HTTP: held against what the generator of the TPU profiles planted, bounded,
and with a sentence for whatever a profile does not have."""
import gzip
import json
import os
import time
import shutil

import daemon
import pytest
import xspace

SHARED = os.path.abspath(os.environ.get('SHARED_DIR') or os.path.join(daemon.ROOT, '..', 'shared'))
TPU = os.path.join(SHARED, 'data', 'tpu', 'profiles')
TOOLS = ['memory_profile', 'memory_viewer', 'graph_viewer', 'inference_profile', 'pod_viewer', 'megascale_stats',
         'utilization_viewer', 'perf_counters', 'kernel_utilization', 'smart_suggestion']
PALLAS = os.path.join(SHARED, 'data', 'real', 'tpu_v6e_pallas_kernel.xplane.pb')
MAX = 2 << 20

EVERY_TOOL = TOOLS + ['overview_page', 'input_pipeline_analyzer', 'framework_op_stats', 'kernel_stats', 'op_profile', 'hlo_stats',
                      'roofline_model']

needs_data = pytest.mark.skipif(not os.path.isdir(TPU), reason='no profiles at %s (set SHARED_DIR)' % TPU)


def module(*instructions, calls=0, more=b''):
    """An HloProto of one computation: (opcode, element type, operands), numbered from 1; the last is the root."""
    body = b''
    for i, (opcode, element, operands) in enumerate(instructions):
        shape = xspace.block(3, xspace.number(2, element) + xspace.number(3, 8) + xspace.block(5, xspace.number(1, 0)))
        body += xspace.block(2, xspace.block(1, 'i%d' % i) + xspace.block(2, opcode) + shape + xspace.number(35, i + 1) +
                             b''.join(xspace.number(36, k) for k in operands) + (xspace.number(38, calls) if calls else b'') + more)
    comp = xspace.block(3, xspace.block(1, 'main') + body + xspace.number(5, 1) + xspace.number(6, len(instructions)))
    return xspace.block(1, xspace.block(1, 'jit_f') + xspace.block(2, 'main') + comp + xspace.number(5, 7) + xspace.number(6, 1))


F32 = 11
MARKUP = xspace.block(7, xspace.block(2, b'\\x22 URL=\\x22javascript:1 \\u{zz') +
                      xspace.block(3, b'</script><script>1" URL="javascript:2') + xspace.number(4, 7))
HLO = {'hlo_truncated': b'\x0a\x7f\x0a', 'hlo_empty': b'', 'hlo_noise': bytes(range(256)) * 4,
       'hlo_ring': module(('negate', F32, [2]), ('negate', F32, [1]), ('call', F32, [1, 3]), calls=1),
       'hlo_markup': module(('parameter', F32, []), ('negate', F32, [1]), more=MARKUP),
       'hlo_unknown': module(('parameter', 250, []), ('quantum-leap', 99, [1, 77])),
       'hlo_wide': module(('parameter', F32, []), ('tuple', F32, [1] * 100000))}


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    """Made profiles: what a capture may lack or have too much of, a run each."""
    folder = tmp_path_factory.mktemp('odd')

    def put(run, data, host='host-0'):
        (folder / run).mkdir(exist_ok=True)
        (folder / run / (host + '.xplane.pb')).write_bytes(data)
    put('nothing', b'')
    put('one_empty', xspace.plane('/host:CPU', ['train'], {'main': [(0, 0, 10, 'a')]}))
    put('one_empty', b'', 'zero')
    put('host_only', xspace.plane('/host:CPU', ['train'], {'main': [(0, 0, 10, 'a')]}))
    put('unknown_planes', xspace.plane('/device:QUANTUM:0', ['op'], {'Qubits': [(0, 0, 10, 'a')]}))
    put('no_steps', xspace.plane('/device:TPU:0', ['fusion.1'], {'XLA Ops': [(0, 0, 10, 'a'), (0, 20, 10, 'a')]}))
    put('no_events', xspace.plane('/device:TPU:0', ['fusion.1'], {'XLA Ops': []}))
    put('command_buffers', xspace.plane('/device:GPU:0', ['CommandBuffer', 'custom-call.1'],
                                        {'Stream #1': [(0, 0, 10, 'a'), (1, 20, 10, 'b')]}))
    put('two_versions', xspace.plane('/device:TPU:0', ['fusion.1'], {'XLA Ops': [(0, 0, 10, 'a')]}), 'new')
    put('two_versions', xspace.plane('/device:TPU:0', ['%fusion.1 = f32[] fusion()'], {'XLA Ops': [(0, 0, 10, 'a')]},
                                     stat='tf_op_old'), 'old')
    for run, proto in HLO.items():
        stat = xspace.block(5, xspace.number(1, 1) + xspace.block(6, proto))
        meta = xspace.block(4, xspace.number(1, 7) + xspace.block(2, xspace.number(1, 7) + xspace.block(2, 'jit_f(7)') + stat))
        names = xspace.block(5, xspace.number(1, 1) + xspace.block(2, xspace.number(1, 1) + xspace.block(2, 'Hlo Proto')))
        put(run, xspace.block(1, xspace.block(2, '/host:metadata') + meta + names))
    for run in ('multislice_v6e_2host', 'serve_v5e', 'input_bound_v5e', 'train_v6e_4host', 'train_v5e', 'wasteful_v5e', 'moe_ring_v6e', 'barrier_v5e_2host'):
        if os.path.isdir(os.path.join(TPU, run)):
            shutil.copytree(os.path.join(TPU, run), folder / run, ignore=shutil.ignore_patterns('*.json'))
    if os.path.exists(PALLAS):
        (folder / 'pallas').mkdir()
        shutil.copy(PALLAS, folder / 'pallas' / 'host-0.xplane.pb')
    return folder


@pytest.fixture(scope='module')
def served(root):
    d = daemon.Daemon('--logdir', str(root))
    yield d
    d.stop()


def report(d, run, tool, **args):
    r = d.api('report', run=run, tool=tool, **args)
    assert r.status == 200, (run, tool, r)
    assert len(r.body) < MAX
    return r.json()


def metrics(doc):
    return {m['id']: m['value'] for m in doc['metrics']}


def rows(doc, id_):
    t = next(t for t in doc['tables'] if t['id'] == id_)
    return [dict(zip((c['id'] for c in t['columns']), row)) for row in t['rows']]


def truth(run):
    with open(os.path.join(TPU, run, 'truth.json'), encoding='utf8') as f:
        return json.load(f)


ODD = ['host_only', 'unknown_planes', 'no_steps', 'no_events', 'command_buffers', 'two_versions'] + list(HLO)


@pytest.mark.parametrize('run', ODD)
def test_what_a_profile_lacks_is_said_and_nothing_else_fails(served, run):
    for tool in EVERY_TOOL:
        doc = report(served, run, tool, no_such_parameter='1')
        for m in doc['metrics']:
            assert m['value'] is not None or len(m['reason']) > 10, (run, tool, m)
        if tool in ('memory_profile', 'memory_viewer', 'inference_profile', 'perf_counters', 'megascale_stats'):
            assert any(m['value'] is None for m in doc['metrics']), (run, tool)
    assert served.api('runs').status == 200


@pytest.mark.parametrize('run', list(HLO))
def test_whatever_a_module_is_like_its_text_and_graphs_end(served, run):
    """On XProf's routes: an answer or an error, of all kinds that a module can be asked for."""
    common = '/data?run=%s&host=host-0&module_name=jit_f(7)&' % run
    for kind in ('short_txt', 'long_txt', 'pb', 'pbtxt', 'adj_nodes', 'graph&format=dot&graph_width=3', 'graph&format=html'):
        r = served.get(daemon.COMPAT + common + 'tag=graph_viewer&node_name=i1&type=' + kind)
        assert r.status in (200, 404, 500) and (r.body or r.status == 200), (run, kind, r)
        # What is called text/html and is no page of ours runs nothing, and is made of nothing that could.
        assert (r.headers.get('content-security-policy') == 'sandbox') == (r.status == 200 and 'format=dot' in kind), (run, kind, r.headers)
        if kind.startswith('graph'):
            text = gzip.decompress(r.body) if r.headers.get('content-encoding') == 'gzip' else r.body
            assert b'<script>1' not in text and b'URL="' not in text and b'\\x22 URL' not in text.replace(b'\\\\', b''), (run, kind)
    for what in ('', '&view_memory_allocation_timeline=true'):
        assert served.get(daemon.COMPAT + common + 'tag=memory_viewer' + what).status in (200, 404, 500), (run, what)
    assert served.alive()


def test_a_module_that_cannot_be_read_is_listed_and_named(served):
    for run in ('hlo_truncated', 'hlo_noise'):
        doc = report(served, run, 'memory_viewer')
        assert [m['module'] for m in rows(doc, 'modules')] == ['jit_f(7)']
        assert {n['code'] for n in doc['notes']} & {'module_damaged', 'module_unknown'} or metrics(doc)['program_peak'] is None


def test_an_empty_file_is_an_answer_or_a_sentence(served):
    for tool in TOOLS:
        r = served.api('report', run='nothing', tool=tool)
        assert r.status == 422 and r.json()['detail'] == 'the file is empty', (tool, r)
        doc = report(served, 'one_empty', tool)
        assert doc['hosts'] == ['host-0'], (tool, doc)
        assert [(h['host'], h['code'], h['detail']) for h in doc['missing_hosts']] == [
            ('zero', 'corrupt_profile', 'the file is empty')]


@needs_data
def test_the_largest_module_is_shown_without_asking(served):
    t = truth('train_v5e')
    name = '%s(%d)' % (t['modules'][0]['name'], t['modules'][0]['program_id'])
    for tool in ('memory_viewer', 'graph_viewer'):
        doc = report(served, 'train_v5e', tool)
        assert name in doc['verdict'], doc['verdict']
        assert rows(doc, 'modules')[0]['module'] == name
    doc = report(served, 'train_v5e', 'memory_viewer')
    got = metrics(doc)
    assert got['program_peak'] >= got['program_arguments'] > 0
    assert max(p[1] for p in doc['series'][0]['points']) == got['program_peak']


@needs_data
def test_what_is_alive_at_a_moment_adds_up_to_what_is_in_use_then(served):
    peak = rows(report(served, 'train_v5e', 'memory_profile'), 'allocators')[0]
    for at in (peak['peak_at'], peak['peak_at'] + 10**9, -1):
        doc = report(served, 'train_v5e', 'memory_profile', at=at)
        for m in rows(doc, 'moment'):
            alive = [row['total'] for row in rows(doc, 'live') if row['allocator'] == m['allocator']]
            assert sum(alive) == (m['used'] or 0), (at, m)
    for tool, bad in (('memory_profile', {'at': 'noon'}), ('memory_profile', {'at': '-'}), ('memory_profile', {'allocator': 'no such'}),
                      ('memory_profile', {'at': 10**17, 't0': 0, 't1': peak['peak_at']}),
                      ('memory_viewer', {'memory_space': 'HBM'}), ('memory_viewer', {'programs': 'foo'})):
        r = served.api('report', run='train_v5e', tool=tool, **bad)
        assert r.status == 400 and list(bad)[0] + '=' in json.loads(r.body)['detail'], (tool, bad, r)


@needs_data
def test_the_thread_that_makes_devices_wait_and_the_kind_of_run_are_named(served):
    doc = report(served, 'input_bound_v5e', 'input_pipeline_analyzer')
    assert metrics(doc)['input_thread'] == 'data_loader_0/73000, in tokenize_and_pack'
    assert 'tokenize_and_pack' in doc['verdict']
    gap = next(g for g in rows(doc, 'gap_threads') if g['event'] == 'tokenize_and_pack')
    assert gap['first_begin_ps'] in [p['first_begin_ps'] for p in rows(doc, 'pauses')]
    for run, kind in (('input_bound_v5e', 'training'), ('serve_v5e', 'inference')):
        assert metrics(report(served, run, 'overview_page'))['run_kind'] == kind


@needs_data
def test_hints_save_no_more_than_their_buffers_and_all_programs_have_their_own_peak(served):
    doc = report(served, 'train_v5e', 'memory_viewer', programs='all')
    hints = rows(doc, 'hints')
    assert {h['what'] for h in hints} >= {'long-lived temporary', 'wide type'}
    assert all(0 < h['saves'] <= h['size'] for h in hints)
    assert [h['saves'] for h in hints] == sorted((h['saves'] for h in hints), reverse=True)
    for space in (s['space'] for s in rows(doc, 'spaces') if s['space']):
        there = report(served, 'train_v5e', 'memory_viewer', memory_space=space)
        assert not {h['what'] for h in rows(there, 'hints')} & {'long-lived temporary', 'argument is not donated'}
    small = [b for b in rows(doc, 'buffers') if b['op'] is None]
    assert all(b['padding'] is None and b['unpadded'] is None for b in small)
    programs = rows(doc, 'programs')
    assert len(programs) == len(rows(doc, 'modules'))
    for p in programs:
        own = metrics(report(served, 'train_v5e', 'memory_viewer', program_id=p['program_id']))
        assert p['peak'] == own['program_peak'] == p['arguments'] + p['temporaries'] + p['padding']
    assert 'programs' not in [t['id'] for t in report(served, 'train_v5e', 'memory_viewer')['tables']]


@needs_data
@pytest.mark.parametrize('run, space', [('train_v5e', 0), ('train_v5e', 1), ('serve_v5e', 0)])
def test_buffers_and_what_none_holds_add_up_to_the_memory_of_each_step(served, run, space):
    doc = report(served, run, 'memory_viewer', lifetimes='all', memory_space=space)
    lives = rows(doc, 'lifetimes')
    series = {s['id']: s['points'] for s in doc['series']}
    rest = {p[0]: p[1] for p in series.get('lifetimes_rest', [])}
    for step, used, _ in series['program_order']:
        alive = sum(b['size'] for b in lives if b['begin'] is None or b['begin'] < step <= b['end'])
        assert alive + rest.get(step, 0) == used, step
    peak = {b['op'] for b in rows(doc, 'buffers')} - {None}
    assert peak <= {b['op'] for b in lives} and {b['op'] for b in lives if b['at_peak']} == peak
    assert len(lives) > len(peak)
    assert 'lifetimes' not in [t['id'] for t in report(served, run, 'memory_viewer')['tables']]
    assert served.api('report', run=run, tool='memory_viewer', lifetimes='some').status == 400


@needs_data
def test_the_neighbours_of_the_slowest_op(served):
    slowest = truth('wasteful_v5e')['slowest_ops'][0]['op']
    doc = report(served, 'wasteful_v5e', 'graph_viewer', radius=1)
    nodes = rows(doc, 'nodes')
    assert nodes[0]['op'] == slowest and nodes[0]['distance'] == 0
    assert all(n['distance'] == 1 for n in nodes[1:])
    assert all(slowest in (e['from'], e['to']) or e['kind'] for e in rows(doc, 'edges'))
    assert slowest in doc['text']
    found = report(served, 'wasteful_v5e', 'graph_viewer', node_name=slowest.upper())
    assert rows(found, 'nodes')[0]['op'] == slowest
    assert all(' = ' in line for line in doc['text'].split('\n') if line)
    assert {n['op'] for n in nodes} == {line.split(' = ')[0].lstrip('%') for line in doc['text'].split('\n') if line}


@needs_data
def test_a_graph_grows_where_it_is_asked_to_and_says_what_an_op_is_part_of(served):
    doc = report(served, 'train_v5e', 'graph_viewer', radius=1)
    more = next(n for n in rows(doc, 'nodes') if n['distance'] == 1 and n['more_operands'] + n['more_users'] > 0)
    grown = report(served, 'train_v5e', 'graph_viewer', radius=1, expand='no.such,%s' % more['op'])
    names = {n['op'] for n in rows(grown, 'nodes')}
    assert names > {n['op'] for n in rows(doc, 'nodes')}
    opened = next(n for n in rows(grown, 'nodes') if n['op'] == more['op'])
    assert opened['more_operands'] == opened['more_users'] == 0
    assert all(n['distance'] <= 2 for n in rows(grown, 'nodes'))
    path = rows(doc, 'path')  # the slowest op is in the body of a loop
    assert path[-1]['opcode'] == 'while' and path[-1]['computation'] != rows(doc, 'nodes')[0]['computation']
    assert len(rows(report(served, 'train_v5e', 'graph_viewer', radius=1, nodes=3), 'nodes')) == 3
    # what is asked for beyond that comes on top: 40 ops each time, and never more than 400
    few = report(served, 'train_v5e', 'graph_viewer', radius=1, nodes=3, expand=rows(doc, 'nodes')[0]['op'])
    assert {n['op'] for n in rows(few, 'nodes')} == {n['op'] for n in rows(doc, 'nodes')}


@needs_data
def test_where_layouts_change_is_what_was_planted(served):
    t = truth('wasteful_v5e')
    doc = report(served, 'wasteful_v5e', 'graph_viewer')
    moves = {m['op']: m for m in rows(doc, 'layouts')}
    planted = [x for kind in ('layout_change_copies', 'standalone_reshapes') for x in t['inefficient_ops'][kind]['top']]
    assert {op for op, m in moves.items() if m['changes'] != 'memory'} == {x['op'] for x in planted}
    for x in planted:
        m = moves[x['op']]
        assert (m['from'], m['to'], m['bytes']) == (x['operand'], x['result'], x['bytes'])
        assert 'order' in m['changes'] if m['opcode'] == 'copy' else m['changes'] == 'dimensions'
    assert {m['op'] for m in rows(doc, 'layouts')[:5]} == {x['op'] for x in planted}  # they take time for nothing else
    assert 'argument t.1 of the program' in moves['reshape.9']['reason']
    figures = metrics(doc)
    assert figures['layout_changes'] == len(planted)
    assert figures['layout_change_fraction'] * 100 == pytest.approx(sum(x['percent_of_op_time'] for x in planted), abs=0.01)
    edge = next(e for e in rows(report(served, 'wasteful_v5e', 'graph_viewer', node_name='copy.6', radius=1), 'edges') if e['to'] == 'copy.6')
    assert (edge['changes'], edge['from_layout'], edge['to_layout']) == ('order, memory', '{1,2,0:T(8,128)(2,1)S(1)}', '{2,1,0:T(8,128)(2,1)}')


@needs_data
def test_a_real_fusion_opens_with_the_fusions_in_it(served):
    doc = report(served, 'wasteful_v5e', 'graph_viewer', radius=1, inside='fusion.1,fusion')
    nodes = rows(doc, 'nodes')
    inside = {n['op']: n['inside'] for n in nodes if n['inside']}
    assert inside['convolution.1'] == 'fusion' and inside['bitcast'] == 'fusion.1'
    assert all(nodes[n['inside_node']]['op'] == n['inside'] for n in nodes if n['inside'])
    tied = {(e['from'], e['to']) for e in rows(doc, 'edges') if e['kind'] == 'parameter'}
    assert {('x.1', 'param_0.6'), ('w.1', 'param_1.8'), ('param_0.6', 'bitcast_input')} == tied
    open_all = report(served, 'train_v5e', 'graph_viewer', merge_fusion='false')
    assert len(rows(open_all, 'nodes')) <= 400 and any(n['opened'] for n in rows(open_all, 'nodes'))


@pytest.mark.skipif(not os.path.exists(PALLAS), reason='no profile at %s (set SHARED_DIR)' % PALLAS)
def test_a_kernel_is_shown_though_xprof_cannot_print_its_semaphores(served):
    doc = report(served, 'pallas', 'graph_viewer')
    assert 'module attributes' in doc['text'] and 'semaphore' in doc['text']
    op, module = rows(doc, 'nodes')[0]['op'], rows(doc, 'modules')[0]['module']
    r = served.get(daemon.COMPAT + '/data?run=pallas&tag=graph_viewer&host=host-0&type=custom_call&node_name=%s&module_name=%s' % (op, module))
    assert r.status == 500


@needs_data
def test_hosts_by_steps_are_a_heat_map(served):
    t = truth('train_v6e_4host')
    doc = report(served, 'train_v6e_4host', 'pod_viewer')
    heat = next(s for s in doc['series'] if s['id'] == 'heat')
    assert len(heat['points']) == t['steps'] * len(t['hosts'])
    assert {p[1] for p in heat['points']} == set(range(len(t['hosts'])))
    assert len(rows(doc, 'cores')) == t['cores']
    mean = sum(p[3] for p in heat['points']) / len(heat['points'])
    assert mean / 1e9 == pytest.approx(t['step_time_ms']['mean'], rel=0.02)
    host, core = t['straggler_seen'].split()[0].split('/')
    waits = rows(doc, 'waits')  # all wait for the planted one, the most whose host it is not on
    assert {(w['for_host'], w['for_core']) for w in waits} == {(host, '/device:' + core)} and {w['host'] for w in waits} == set(t['hosts'])
    assert waits[-1]['host'] == host and all(w['duration'] <= w['waiting'] and 0.05 < w['share'] < 0.12 for w in waits)
    bars = next(s for s in doc['series'] if s['id'] == 'cores')
    assert bars['points'][0][0] == t['straggler_seen'].split()[0] and len(bars['points']) == t['cores']
    own = {r['host'] + r['core'].replace('/device:', '/'): r for r in rows(doc, 'cores')}
    for name, *parts in bars['points']:
        assert sum(parts) == pytest.approx(own[name]['step_time'], abs=4)
    cores = next(s for s in doc['series'] if s['id'] == 'map')
    assert len(cores['points']) == t['cores'] and {p[0] for p in cores['points']} == set(range(4))
    assert all(c['mean_time'] * c['occurrences'] <= c['self_time'] for c in rows(doc, 'collectives')) and rows(doc, 'collectives')


@needs_data
def test_prefill_and_decode_are_told_apart(served):
    """Each request of the made server is one run of jit_prefill and three of jit_generate."""
    doc = report(served, 'serve_v5e', 'inference_profile')
    got, t = metrics(doc), truth('serve_v5e')
    phases = {p['phase']: p for p in rows(doc, 'phases')}
    assert {p: phases[p]['rule'] for p in ('prefill', 'decode')} == {'prefill': 'by name', 'decode': 'by name'}
    for p in rows(doc, 'programs'):
        name = next(m['name'] for m in t['modules'] if str(m['program_id']) in p['program'])
        assert p['phase'] == {'jit_prefill': 'prefill', 'jit_generate': 'decode'}[name]
    for r in rows(doc, 'requests'):
        assert r['decodes'] == 3 and 0 < r['prefill'] < r['decode']
        assert 0 <= r['compute'] - r['prefill'] - r['decode'] < 1e-6 * r['compute']
    assert got['first_token_time'] > got['prefill_time']
    assert 3 * got['decode_run_time'] == pytest.approx(got['decode_time'], rel=0.01)
    assert got['prefill_time'] + got['decode_time'] == pytest.approx(1e9 * t['device_busy_ms_per_step'], rel=0.001)
    latencies = next(s for s in doc['series'] if s['id'] == 'latencies')
    assert sum(p[1] for p in latencies['points']) == got['requests']
    by = report(served, 'serve_v5e', 'inference_profile', by='prefill')
    assert [r['prefill'] for r in rows(by, 'percentiles')] == sorted(r['prefill'] for r in rows(by, 'percentiles'))
    for unknown in ('size', 'delay'):
        none = next(x for x in report(served, 'serve_v5e', 'inference_profile', by=unknown)['tables'] if x['id'] == 'percentiles')
        assert not none['rows'] and 'no request' in none['note']
    parts = [report(served, 'serve_v5e', 'inference_profile', t0=a * 10 ** 9, t1=b * 10 ** 9)
             for a, b in ((0, 500), (500, 900), (900, 10000))]
    for name in ('requests', 'programs'):
        assert all(rows(p, name) for p in parts)
    uncut = sorted((r['first_begin_ps'], r['latency'], r['decode'], r['compute']) for r in rows(doc, 'requests'))
    assert sorted((r['first_begin_ps'], r['latency'], r['decode'], r['compute']) for p in parts for r in rows(p, 'requests')) == uncut
    for column in ('runs', 'total'):
        assert sum(r[column] for p in parts for r in rows(p, 'programs')) == sum(r[column] for r in rows(doc, 'programs'))
    only = report(served, 'serve_v5e', 'inference_profile', model='demo-lm:1')
    assert metrics(only)['requests'] == got['requests']
    for bad in ({'model': 'no such'}, {'by': 'no such'}):
        assert served.api('report', run='serve_v5e', tool='inference_profile', **bad).status == 400


@needs_data
def test_transfers_between_slices_have_their_times(served):
    doc = report(served, 'multislice_v6e_2host', 'megascale_stats')
    found = rows(doc, 'transfers')
    assert found and metrics(doc)['transfers'] == sum(r['occurrences'] for r in found)
    assert metrics(doc)['transfer_stall'] == sum(r['total_stall'] for r in found)
    for r in found:
        assert r['total_stall'] == r['stall'] * r['occurrences']
        assert r['stall'] >= max(r['recv_stall'], r['recv_done_stall']), r
        assert r['p50'] <= r['p99'] <= r['duration'] and r['tail'] == pytest.approx(r['p99'] / r['p50'])
        assert r['slices'] in ('1, 2', '2->1, 1->2') and r['first_host'] in truth('multislice_v6e_2host')['hosts']
    peers = rows(doc, 'peers')  # two devices of either slice
    assert {(p['from'], p['to']) for p in peers} == {('slice %d, device %d' % (a, d), 'slice %d, device %d' % (1 - a, d)) for a in (0, 1) for d in (0, 1)}
    assert all(p['messages'] == truth('multislice_v6e_2host')['steps'] for p in peers)


@needs_data
def test_each_time_a_collective_happened_has_its_ops_and_actions(served):
    doc = report(served, 'multislice_v6e_2host', 'megascale_stats')
    t = truth('multislice_v6e_2host')
    first, got = rows(doc, 'transfers')[0], metrics(doc)
    assert first['total_stall'] == max(r['total_stall'] for r in rows(doc, 'transfers')) and got['collective'] == first['rendezvous']
    times = rows(doc, 'occurrences')  # on each of four devices of two hosts
    assert len(times) == t['steps'] * t['cores'] and got['occurrence'] == times[0]['key']
    assert {(r['host'], r['device']) for r in times} == {(h, d) for h in t['hosts'] for d in range(4)}
    assert first['duration'] == max(r['duration'] for r in times if r['device'] == 0)  # transfers are those of device 0
    assert [r['kind'] for r in rows(doc, 'actions')] == ['send', 'recv', 'send-done', 'recv-done']
    assert times[0]['duration'] == max(r['after'] + r['duration'] for r in rows(doc, 'actions'))
    traced = report(served, 'multislice_v6e_2host', 'megascale_stats', collective='all-reduce.1')
    assert [r['kind'] for r in rows(traced, 'actions')] == ['copy to host', 'network send', 'network receive', 'copy to device']
    assert [(r['from'], r['to']) for r in rows(traced, 'action_links')] == [(0, 1), (2, 3)]
    other = rows(traced, 'occurrences')[5]['key']
    asked = report(served, 'multislice_v6e_2host', 'megascale_stats', occurrence=other)
    assert metrics(asked)['occurrence'] == other and metrics(asked)['collective'] == 'all-reduce.1'
    rate = next(s for s in doc['series'] if s['id'] == 'network_rate')
    sent = sum(p[1] for p in rate['points']) * (rate['points'][1][0] - rate['points'][0][0]) / 1e12
    assert sent == pytest.approx(t['steps'] * t['cores'] * (16 << 20), rel=1e-6)  # 16 MiB a step and device
    parts = [r for r in times if r['first_begin_ps'] == times[0]['first_begin_ps'] and r['host'] == times[0]['host']]
    for r in parts:  # several devices may do the same at once
        asked = report(served, 'multislice_v6e_2host', 'megascale_stats', host=r['host'], at=r['first_begin_ps'], device=r['device'])
        assert metrics(asked)['occurrence'] == r['key']
    for name in ('collective', 'occurrence'):  # not there, as for other hosts: said, and the usual is shown
        odd = report(served, 'multislice_v6e_2host', 'megascale_stats', **{name: 'no such'})
        assert 'no_such_' + name in {n['code'] for n in odd['notes']} and metrics(odd)['occurrence'] == got['occurrence']
    assert served.api('report', run='multislice_v6e_2host', tool='megascale_stats', at=7).status == 400


@needs_data
def test_what_goes_between_chips_is_told_by_channel_group_and_step(served):
    ring = report(served, 'moe_ring_v6e', 'pod_viewer')
    assert {(e['from'], e['to']) for e in rows(ring, 'edges')} == {(0, 1), (1, 2), (2, 3), (3, 0)}
    assert {(c['id'], c['x'], c['y']) for c in rows(ring, 'chips')} == {(i, i % 2, i // 2) for i in range(4)}
    back = next(c for c in rows(ring, 'channels') if c['op'] == 'collective-permute-start.3')
    doc = report(served, 'moe_ring_v6e', 'pod_viewer', channel=back['key'])
    assert {(e['from'], e['to']) for e in rows(doc, 'edges')} == {(1, 0), (2, 1), (3, 2), (0, 3)}
    assert sum(e['count'] for e in rows(doc, 'edges')) == back['count']
    ops = {r['op']: r for r in rows(ring, 'collectives')}  # those in one piece take what their events do
    for g in rows(ring, 'replica_groups'):
        assert g['group'] == '0,1,2,3' and (g['total'], g['count']) == (ops[g['op']]['self_time'], ops[g['op']]['occurrences'])
    t = truth('multislice_v6e_2host')
    one = report(served, 'multislice_v6e_2host', 'pod_viewer', host=t['hosts'][0])  # the truth is of its first core
    waits = sum(c['wait'] * c['count'] for c in rows(one, 'channels') if c['kind'] == 'recv') / 1e9
    assert waits / t['steps'] / 4 == pytest.approx(t['dcn_recv_wait_ms_per_step'], rel=5e-3)
    assert {(c['slice'], c['x'], c['y']) for c in rows(one, 'chips')} == {(0, i % 2, i // 2) for i in range(4)}
    doc = report(served, 'multislice_v6e_2host', 'pod_viewer')
    assert {(c['slice'], c['x'], c['y']) for c in rows(doc, 'chips')} == {(s, i % 2, i // 2) for s in (0, 1) for i in range(4)}
    assert {'0,1', '2,3', '4,5', '6,7'} <= {g['group'] for g in rows(doc, 'replica_groups')}
    end = back['first_begin_ps'] + back['duration']  # what the range cuts is no latency
    seen = [sum(c['count'] for c in rows(report(served, 'moe_ring_v6e', 'pod_viewer', t0=back['first_begin_ps'], t1=t1), 'channels') if c['key'] == back['key'])
            for t1 in (end - 1, end + 1)]
    assert seen[0] < seen[1]


@needs_data
def test_the_torus_shows_a_step_and_who_is_slow_in_it(served):
    t = truth('train_v6e_4host')
    means = rows(report(served, 'train_v6e_4host', 'pod_viewer'), 'chips')
    for first, chips in ((None, means), (101, rows(report(served, 'train_v6e_4host', 'pod_viewer', step=101), 'chips'))):
        assert {(c['chip'], c['x'], c['y'], c['z']) for c in chips} == {(i, i % 4, i // 4, 0) for i in range(16)}
        slow = max(chips, key=lambda c: c['own_time'])
        assert t['straggler_seen'].startswith('%s/%s' % (slow['host'], slow['core'].removeprefix('/device:')))
        assert all((c['first_begin_ps'] is None) == (first is None) for c in chips)
        for c in chips:
            assert c['own_time'] == pytest.approx(c['step_time'] - c['waiting'], rel=1e-6)
    one = report(served, 'train_v6e_4host', 'pod_viewer', host=means[0]['host'])  # the slice is as large without the others
    here = {c['chip']: (c['x'], c['y']) for c in means}
    assert {c['chip']: (c['x'], c['y']) for c in rows(one, 'chips')}.items() <= here.items() and len(rows(one, 'chips')) == 4
    assert '4 of 16 chips' in next(t['note'] for t in one['tables'] if t['id'] == 'chips')
    late = truth('barrier_v5e_2host')
    doc = report(served, 'barrier_v5e_2host', 'pod_viewer')
    worst = rows(doc, 'waits')[0]
    said = report(served, 'barrier_v5e_2host', 'smart_suggestion')  # barriers are waits for others, and no other waits
    gate = {g['id']: g['value'] for g in rows(said, 'gate')}
    assert gate['waits'] < metrics(said)['idle_fraction'] and gate['others'] > 0.1
    assert worst['for_host'] == late['late_host'] and worst['host'] != late['late_host']
    for c in rows(doc, 'cores'):  # what is waited is the barrier, to the last step, whose end is the capture's
        waited = c['waiting'] * c['step_time'] / 1e9
        assert waited == pytest.approx(late['barrier_ms_per_step_per_core']['%s/%s' % (c['host'], c['core'].removeprefix('/device:'))], abs=0.08)
    for code, odd in (('no_such_step', {'step': 7}), ('small_topology', {'topology': '2x2'}), ('no_such_channel', {'channel': 'no such'})):
        doc = report(served, 'train_v6e_4host', 'pod_viewer', **odd)
        assert code in {n['code'] for n in doc['notes']} and rows(doc, 'chips') == means
    for bad in ({'step': 'x'}, {'topology': 'x'}):
        assert served.api('report', run='train_v6e_4host', tool='pod_viewer', **bad).status == 400


@needs_data
@pytest.mark.parametrize('run, rule', [('input_bound_v5e', 'input_bound'), ('wasteful_v5e', 'data_formatting')])
def test_what_was_planted_is_suggested_with_its_share(served, run, rule):
    doc = report(served, run, 'smart_suggestion')
    found = {r['rule']: r for r in rows(doc, 'findings')}
    assert rule in found, found
    if rule == 'input_bound':
        assert 100 * found[rule]['share'] == pytest.approx(truth(run)['input_wait_percent'], abs=1)
        assert doc['verdict'].startswith(found[rule]['finding'])
    else:
        assert found[rule]['evidence'] and found[rule]['op']
    assert rule not in {r['rule'] for r in rows(report(served, 'train_v5e', 'smart_suggestion'), 'findings')}
    assert metrics(doc)['suggestions'] == len(found)
    for r in found.values():  # each leads to where it is seen
        assert r['first_host'] in doc['hosts'] and r['first_plane'].startswith('/device:TPU:') and r['first_duration_ps'] > 0, r
    if rule == 'input_bound':  # a pause of the device, no longer than a step
        assert found[rule]['first_duration_ps'] < metrics(doc)['step_time_mean']


def test_shared_metrics_are_the_same_in_every_tool(served, root):
    for run in sorted(os.listdir(root)):
        seen = {}
        for tool in TOOLS + ['overview_page']:
            r = served.api('report', run=run, tool=tool)
            for m in r.json()['metrics'] if r.status == 200 else []:
                assert seen.setdefault(m['id'], m['value']) == m['value'], (run, tool, m)


def test_xprofs_routes_of_the_same_profiles_answer_too(served):
    for run in ODD:
        for tool in TOOLS:
            r = served.get(daemon.COMPAT + '/data?' + daemon.query(run=run, tag=tool, host='host-0'))
            assert r.status in (200, 404, 500), (run, tool, r)
    assert served.api('runs').status == 200


def test_gzipped_profiles_are_the_same(served, root):
    os.makedirs(root / 'zipped', exist_ok=True)
    data = (root / 'no_steps' / 'host-0.xplane.pb').read_bytes()
    (root / 'zipped' / 'host-0.xplane.pb.gz').write_bytes(gzip.compress(data))
    end = time.monotonic() + 20
    while served.api('run', run='zipped').status != 200 and time.monotonic() < end:
        time.sleep(0.1)  # a new run appears within seconds
    a, b = report(served, 'no_steps', 'smart_suggestion'), report(served, 'zipped', 'smart_suggestion')
    assert a == b
