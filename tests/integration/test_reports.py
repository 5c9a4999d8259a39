"""Reports: our own answers of tools. The numbers are held against what the generator of the TPU profiles did, one metric has
one value in every tool, what is missing is n/a with a reason, and a host that cannot be read is named."""
import json
import os
import re
import shutil
import subprocess

import daemon
import pytest

SHARED = os.path.abspath(os.environ.get('SHARED_DIR') or os.path.join(daemon.ROOT, '..', 'shared'))
DATA = os.path.join(SHARED, 'data')
TPU = os.path.join(DATA, 'tpu', 'profiles')
TRUTHS = sorted(r for r in os.listdir(TPU) if os.path.exists(os.path.join(TPU, r, 'truth.json'))) if os.path.isdir(TPU) else []
SAMPLES = ['jax_cpu_python', 'jax_cpu_train', 'jax_two_host', 'synth_gpu_train', 'synth_inference', 'synth_megascale',
           'synth_tpu_counters', 'synth_tpu_train']
REAL = sorted(f for f in os.listdir(os.path.join(DATA, 'real')) if f.endswith('.xplane.pb')) if os.path.isdir(DATA) else []
STEP_TOOLS = ['overview_page', 'input_pipeline_analyzer']
OP_TOOLS = ['framework_op_stats', 'hlo_stats', 'kernel_stats', 'op_profile', 'overview_page', 'roofline_model']
MAX = 2 << 20

needs_data = pytest.mark.skipif(not TRUTHS, reason='no profiles at %s (set SHARED_DIR)' % DATA)


def tools():
    """All tools, in the words of tools.def."""
    with open(os.path.join(daemon.ROOT, 'shard', 'tools', 'tools.def'), encoding='utf8') as f:
        return re.findall(r'^TOOL\(\w+, "([^"]+)"', f.read(), re.M)


@pytest.fixture(scope='module')
def logs(tmp_path_factory):
    """Every sample as a run of one directory."""
    root = tmp_path_factory.mktemp('reports')
    folders = [os.path.join(TPU, name) for name in TRUTHS] + [os.path.join(DATA, 'profiles', name) for name in SAMPLES]
    for folder in folders:
        shutil.copytree(folder, root / os.path.basename(folder), ignore=shutil.ignore_patterns('*.json'))
    for name in REAL:
        run = root / ('real_' + name.split('.')[0])
        run.mkdir()
        shutil.copy(os.path.join(DATA, 'real', name), run)
    return str(root)


@pytest.fixture(scope='module')
def served(logs):
    d = daemon.Daemon('--logdir', logs)
    yield d
    d.stop()


RUNS = TRUTHS + SAMPLES + ['real_' + name.split('.')[0] for name in REAL]
known = {}


def report(d, run, tool, **args):
    """The report, or None where the tool has none."""
    key = (run, tool, tuple(args.items()))
    if key not in known:
        r = d.api('report', run=run, tool=tool, **args)
        assert r.status in (200, 400, 404), (run, tool, r)
        assert len(r.body) < MAX, (run, tool, len(r.body))
        known[key] = r.json() if r.status == 200 else None
        if r.status == 200:
            shape(known[key])
    return known[key]


def shape(doc):
    """The contract: every value has its reason, note, definition; rows fit their columns."""
    ids = [m['id'] for m in doc['metrics']]
    assert len(ids) == len(set(ids)), ids
    for m in doc['metrics']:
        assert (m['value'] is None) == (m['reason'] is not None), m
        assert m['label'] and m['definition'] is not None, m
        assert m['unit'] != 'ps' or m['value'] is None or isinstance(m['value'], int), m
    for t in doc['tables']:
        width = len(t['columns'])
        assert all(len(row) == width for row in t['rows']), t['id']
        assert len(t['rows']) <= t['matched_rows'] <= t['total_rows'], t['id']
        assert (t['rest'] is None) == (len(t['rows']) == t['total_rows']), t['id']
        if t['rest']:
            assert t['rest']['rows'] == t['total_rows'] - len(t['rows']), t['id']
    for s in doc['series']:
        assert len(s['points']) <= 2000 and all(len(p) == 1 + len(s['names']) for p in s['points']), s['id']
    if doc['tree']:
        for i, node in enumerate(doc['tree']['nodes']):
            assert -1 <= node['parent'] < i, (i, node)
    assert all(n['severity'] in ('info', 'warning', 'error') and n['code'] and n['text'] for n in doc['notes'])


def metrics(doc):
    return {m['id']: m['value'] for m in doc['metrics']}


def table(doc, id_):
    t = next(t for t in doc['tables'] if t['id'] == id_)
    return [dict(zip((c['id'] for c in t['columns']), row)) for row in t['rows']]


def truth_of(run):
    with open(os.path.join(TPU, run, 'truth.json'), encoding='utf8') as f:
        return json.load(f)


# --- the truth ---


@needs_data
@pytest.mark.parametrize('run', TRUTHS)
def test_steps_idle_and_use_are_what_the_generator_did(served, run):
    truth, got = truth_of(run), metrics(report(served, run, 'overview_page'))
    assert got['steps'] == truth['steps'] and got['hosts'] == len(truth['hosts']) and got['cores'] == truth['cores']
    assert got['device_type'] == truth['device_type']
    assert got['step_time_mean'] / 1e9 == pytest.approx(truth['step_time_ms']['mean'], rel=0.006)
    assert 100 * got['mxu_utilization'] == pytest.approx(truth['mxu_utilization_percent'], abs=0.4)
    assert 100 * got['hbm_utilization'] == pytest.approx(truth['hbm_utilization_percent'], abs=1.1)
    if truth['barrier_ms_per_step_per_core']:  # which the truth does not call idle
        assert 100 * got['idle_fraction'] > 100 * 0.9 / 5.1
    else:
        assert 100 * got['idle_fraction'] == pytest.approx(truth['idle_percent'], abs=0.4)
    if got['input_fraction'] is None:
        assert truth['input_wait_percent'] == 0
    else:
        assert 100 * got['input_fraction'] == pytest.approx(truth['input_wait_percent'], abs=0.8)


@needs_data
def test_what_waits_for_input_is_said_so(served):
    doc = report(served, 'input_bound_v5e', 'input_pipeline_analyzer')
    assert 'input bound' in doc['verdict'] and 'does not' not in doc['verdict']
    for step in table(doc, 'steps')[:-1]:
        assert step['input'] / step['time'] == pytest.approx(0.35, abs=0.035), step
    pauses = table(doc, 'pauses')
    assert sum(p['cause'] == 'input' for p in pauses) == 10 and all(p['time'] > 15e9 for p in pauses[:12])  # 2 cores, 5 gaps
    assert 'does not wait' in report(served, 'train_v5e', 'input_pipeline_analyzer')['verdict']


@needs_data
@pytest.mark.parametrize('run', TRUTHS)
def test_the_straggler_is_found_and_nobody_else_is(served, run):
    truth, got = truth_of(run), metrics(report(served, run, 'overview_page'))['straggler']
    if truth['straggler_seen']:
        assert got == truth['straggler_seen'].split()[0]
    elif truth['late_host']:
        assert got == truth['late_host']
    else:
        assert got in ('none', None)


@needs_data
def test_waiting_at_a_barrier_is_no_idle_time_of_unknown_cause(served):
    truth, doc = truth_of('barrier_v5e_2host'), report(served, 'barrier_v5e_2host', 'overview_page')
    hosts = {h['host']: h for h in table(doc, 'hosts')}
    for host in truth['hosts']:  # mean over the host's cores
        cores = [v for k, v in truth['barrier_ms_per_step_per_core'].items() if k.startswith(host + '/')]
        want = sum(cores) / len(cores) / truth['step_time_ms']['mean']
        assert hosts[host]['waiting'] == pytest.approx(want, abs=0.015), host
    for step in table(doc, 'steps')[2:-1]:  # what the waiting host did: all but the launch lag of the late one
        assert step['compute'] + step['waiting'] + step['idle'] + (step['input'] or 0) == pytest.approx(step['time'], abs=2)
        assert step['compute'] / 1e9 == pytest.approx(3.97, rel=0.03)
    cores = truth['barrier_ms_per_step_per_core'].values()
    found = {r['rule']: r for r in table(report(served, 'barrier_v5e_2host', 'smart_suggestion'), 'findings')}
    assert found['barrier_cores']['share'] == pytest.approx(sum(cores) / len(cores) / truth['step_time_ms']['mean'], abs=0.01)
    assert found['idle']['share'] < 0.13


@needs_data
@pytest.mark.parametrize('run', TRUTHS)
def test_ops_and_categories_take_what_they_took(served, run):
    truth, doc = truth_of(run), report(served, run, 'hlo_stats')
    ops = {(op['op'], op['occurrences']): op for op in table(doc, 'ops')}
    total = sum(op['self_time'] for op in ops.values() if op['category'] != 'while')
    for want in truth['slowest_ops']:
        op = ops[want['op'], want['occurrences_all_cores']]
        assert op['category'] == want['category']
        assert op['self_time'] / 1e9 == pytest.approx(want['total_ms_all_cores'], rel=1e-4, abs=1e-3)
        if len(ops) == doc['tables'][0]['total_rows']:
            assert 100 * op['self_time'] / total == pytest.approx(want['percent_of_op_time'], abs=0.02)
    shares = {c['category']: 100 * c['share'] for c in table(doc, 'categories')}
    for name, want in truth['categories_percent'].items():
        assert shares.get(name, 0) == pytest.approx(want, abs=0.35), name


@needs_data
@pytest.mark.parametrize('run,host', [('train_v6e_4host', 'tpu-job-w-0'), ('real_gpu_mi300_jax_attention', 'gpu_mi300_jax_attention')])
def test_an_op_and_a_step_lead_to_the_timeline(served, run, host):
    doc = report(served, run, 'hlo_stats')
    assert {'table': 'ops', 'column': 'op'} in doc['links']
    tracks = served.api('tracks', run=run, host=host, wait='all').json()
    for op in table(doc, 'ops')[:3]:
        assert op['host'] == host
        plane = next(p for p in tracks['planes'] if p['name'] == op['first_plane'])
        rows = ','.join(str(line['line']) for line in plane['lines'])
        at = op['first_begin_ps']
        hits = served.api('search', run=run, host=host, q='"%s"' % op['op'], t0=at, t1=at + 1, rows=rows).json()
        assert any(h['begin_ps'] == at for h in hits['hits']) or run.startswith('real_gpu'), op  # kernels have names of their own
        assert tracks['begin_ps'] <= at < tracks['end_ps']
    for step in table(report(served, run, 'overview_page'), 'steps'):
        assert step['host'] and step['first_plane'].startswith('/device:') and step['first_begin_ps'] > 0


@needs_data
@pytest.mark.parametrize('run', [r for r in TRUTHS if 'wasteful' in r or 'dropped' in r])
def test_planted_waste_is_seen_where_it_was_planted(served, run):
    truth = truth_of(run)
    ops = {op['op']: op for op in table(report(served, run, 'hlo_stats'), 'ops')}
    assert truth['planted_scopes']
    for scope, want in truth['planted_scopes'].items():
        share = sum(ops[name]['share'] for name in want['ops'] if name in ops)
        assert 100 * share == pytest.approx(want['percent_of_op_time'], abs=0.1), scope
    for kind in truth['inefficient_ops'].values():
        for op in kind['top']:
            assert 100 * ops[op['op']]['share'] == pytest.approx(op['percent_of_op_time'], abs=0.02), op


@needs_data
def test_what_the_profiler_lost_is_told(served):
    assert any('dropped' in n['text'] for n in report(served, 'dropped_v5e', 'overview_page')['notes'])


# --- the overview's panels ---


@needs_data
def test_a_program_is_held_against_its_own_optimum(served):
    for run in ('train_v5e', 'synth_gpu_train'):
        m = metrics(report(served, run, 'overview_page'))
        use = m['roofline_efficiency']
        assert use == max(m['mxu_utilization'], m['hbm_utilization'])
        assert m['flop_rate'] / m['optimum_flop_rate'] == pytest.approx(use)
        assert m['hbm_rate'] / m['optimum_hbm_rate'] == pytest.approx(use)


@needs_data
def test_kinds_of_a_step_add_up_and_shares_too(served):
    doc = report(served, 'synth_gpu_train', 'overview_page')
    m, kinds = metrics(doc), table(doc, 'step_kinds')
    assert [k['kind'] for k in kinds] == ['compute', 'collectives', 'device to device', 'input', 'output', 'host compute',
                                          'launch', 'compile', 'other']
    assert sum(k['share'] for k in kinds) == pytest.approx(1)
    assert sum(k['time'] for k in kinds) == pytest.approx(m['step_time_mean'], abs=9)
    assert m['host_op_fraction'] + m['device_op_fraction'] == pytest.approx(1)
    assert m['compute_16bit_fraction'] + m['compute_32bit_fraction'] == pytest.approx(1)
    cpu = report(served, 'jax_cpu_train', 'overview_page')
    assert not [t for t in cpu['tables'] if t['id'] in ('step_kinds', 'latency')]
    for id_ in ('goodput', 'host_op_fraction', 'device_eager_fraction', 'compute_16bit_fraction'):
        assert metrics(cpu)[id_] is None, id_


@needs_data
def test_requests_are_told_by_percentile_where_a_run_answers_some(served):
    doc = report(served, 'synth_inference', 'overview_page')
    rows, own = table(doc, 'latency'), metrics(report(served, 'synth_inference', 'inference_profile'))
    assert [r['percentile'] for r in rows] == [50, 75, 90, 99, 99.9]
    assert {r['percentile']: r['latency'] for r in rows}[90] == own['latency_p90'] == metrics(doc)['latency_p90']
    assert all(r['host'] + r['device'] + r['transfer'] == r['latency'] for r in rows)


@needs_data
def test_figures_lead_to_the_moment_that_explains_them(served):
    doc = report(served, 'train_v6e_4host', 'overview_page')
    rows = {r['metric']: r for r in table(doc, 'windows')}
    assert set(rows) == {'step_time_mean', 'mxu_utilization', 'flop_rate', 'hbm_utilization', 'hbm_rate', 'collective_fraction'}
    assert all(r['host'] in doc['hosts'] and r['first_plane'] and r['duration'] > 0 for r in rows.values())
    assert rows['step_time_mean']['duration'] == max(s['longest'] for s in table(doc, 'steps') if s['whole'])
    ops = {o['op']: o for o in table(doc, 'ops')}
    for id_ in set(rows) - {'step_time_mean'}:
        assert ops[rows[id_]['op']]['first_begin_ps'] == rows[id_]['first_begin_ps'], id_


# --- one metric, one value ---


@needs_data
@pytest.mark.parametrize('run', RUNS)
def test_a_metric_has_one_value_in_every_tool(served, run):
    seen = {}
    for tool in tools():
        doc = report(served, run, tool)
        for m in doc['metrics'] if doc else []:
            first = seen.setdefault(m['id'], (tool, m))
            assert [m[k] for k in ('value', 'unit', 'label', 'definition', 'reason')] == \
                   [first[1][k] for k in ('value', 'unit', 'label', 'definition', 'reason')], (m['id'], tool, first[0])
    assert {'idle_fraction', 'device_type', 'hosts'} <= set(seen)


@needs_data
def test_totals_are_of_all_rows_whatever_is_shown(served):
    whole = report(served, 'train_v5e', 'hlo_stats')
    few = report(served, 'train_v5e', 'hlo_stats', table='ops', limit=5, sort='occurrences', filter='fusion')
    a, b = whole['tables'][0], few['tables'][0]
    assert [t['id'] for t in few['tables']] == ['ops'] and len(b['rows']) == 5 < b['matched_rows'] < b['total_rows'] == a['total_rows']
    assert a['totals'] == b['totals'] and b['sort'] == {'column': 'occurrences', 'descending': False}
    at = [c['id'] for c in b['columns']].index('self_time')
    assert b['rest']['self_time'] + sum(row[at] for row in b['rows']) == b['totals']['self_time']
    assert all('fusion' in json.dumps(row) for row in b['rows'])
    step_on = report(served, 'train_v5e', 'hlo_stats', table='ops', limit=5, sort='occurrences', filter='fusion', skip=5)
    assert step_on['tables'][0]['rows'][0] not in b['rows']


@needs_data
def test_a_filter_may_be_a_regular_expression(served):
    def ops(**args):
        return [op['op'] for op in table(report(served, 'train_v5e', 'hlo_stats', table='ops', **args), 'ops')]
    some = ops(filter=r'/^fusion\.[0-9]+$/')
    assert some == [name for name in ops() if re.fullmatch(r'fusion\.[0-9]+', name)] and len(some) > 1
    for bad in ('/(/', '/a{2}/', '/' + 65 * 'a' + '/'):
        r = served.api('report', run='train_v5e', tool='hlo_stats', filter=bad)
        assert r.status == 400 and 'regular expression' in r.json()['detail']


# --- groups, kernels, gains ---


@needs_data
@pytest.mark.parametrize('run', ['synth_gpu_train', 'real_gpu_mi300_jax_attention', 'real_gpu_tf_multi_worker'])
def test_durations_are_those_of_all_launches(served, run):
    doc = report(served, run, 'kernel_stats')
    kernels = table(doc, 'kernels')
    bins = next(s for s in doc['series'] if s['id'] == 'durations')['points']
    assert sum(n for _, n in bins) == sum(k['occurrences'] for k in kernels) and bins[0][1] and bins[-1][1]
    assert bins[0][0] <= min(k['min_time'] for k in kernels) and bins[-1][0] <= max(k['max_time'] for k in kernels)
    assert sum(k['share'] for k in kernels) == pytest.approx(1)
    unnamed = sum(k['total_time'] for k in kernels if k['op'] is None)
    assert metrics(doc)['unnamed_kernel_fraction'] == pytest.approx(unnamed / metrics(doc)['kernel_time'])
    name = kernels[-1]['kernel']
    one = report(served, run, 'kernel_stats', kernel=name)
    bins = next(s for s in one['series'] if s['id'] == 'kernel_durations')['points']
    assert sum(n for _, n in bins) == sum(k['occurrences'] for k in kernels if k['kernel'] == name)
    assert any(n['code'] == 'no_such_kernel' for n in report(served, run, 'kernel_stats', kernel='none')['notes'])


@needs_data
@pytest.mark.parametrize('run', ['train_v5e', 'synth_tpu_train'])
def test_groups_hold_all_ops(served, run):
    doc = report(served, run, 'hlo_stats')
    ops = table(doc, 'ops')
    for id_, key in (('categories', 'category'), ('layers', 'layer'), ('sources', 'source')):
        if not any(t['id'] == id_ for t in doc['tables']):
            assert all(op[key] is None for op in ops)
            continue
        for group in table(doc, id_):
            mine = [op for op in ops if op[key] == group[key] and op['self_time'] is not None]
            assert group['self_time'] == sum(op['self_time'] for op in mine) and group['ops'] == len(mine)
    steps = sum(op['step_share'] for op in ops if op['step_share'])
    assert 0.5 < steps < 1.01
    again = table(doc, 'rematerialization') if any(op['rematerialized'] for op in ops) else []
    for group in again:
        mine = [op for op in ops if op['rematerialized'] == (group['computed'] == 'again') and op['self_time'] is not None]
        assert group['self_time'] == sum(op['self_time'] for op in mine) and group['ops'] == len(mine) > 0
    if again:
        assert metrics(doc)['remat_fraction'] == pytest.approx(next(g['share'] for g in again if g['computed'] == 'again'))
        groups = table(doc, 'replica_groups')
        assert sum(g['ops'] for g in groups) < len(ops) and any(g['replica_group'] is None for g in groups)
        for g in (g for g in groups if g['replica_group']):
            told = ['%s=%s' % (key, g['replica_group']) for key in ('replica_groups', 'source_target_pairs')]
            mine = [op for op in ops if any(text in (op['text'] or '') for text in told)]
            assert len(mine) == g['ops'] and sum(op['self_time'] for op in mine) == g['self_time'], g
    assert not any(op['outside_compilation'] or op['autotuned'] for op in ops)
    assert not any(t['id'] == 'outside_compilation' for t in doc['tables'])


@needs_data
@pytest.mark.parametrize('run', ['train_v5e', 'synth_gpu_train'])
def test_idle_time_is_an_operation_where_it_is_asked_for(served, run):
    for tables in (('device', 'device_types'), ('host', 'host_types')):
        for idle in ('0', '1'):
            doc = report(served, run, 'framework_op_stats', idle=idle, limit=100000)
            ops, types = (table(doc, t) for t in tables)
            assert sum(op['share'] for op in ops) == pytest.approx(1) and sum(t['share'] for t in types) == pytest.approx(1)
            for t in types:
                assert t['self_time'] == sum(op['self_time'] for op in ops if op['type'] == t['type'])
            assert [op['self_time'] > 0 for op in ops if op['operation'] == 'IDLE'] == [True] * int(idle)
    both = [report(served, run, 'op_profile', idle=i, limit=100000)['tree']['nodes'] for i in '01']
    idle = [n['values'][0] for n in both[1] if n['name'] == 'IDLE']
    assert len(both[1]) == len(both[0]) + 1 and both[1][0]['values'][0] == both[0][0]['values'][0] + idle[0]
    assert idle == [op['self_time'] for op in table(report(served, run, 'framework_op_stats', idle='1', limit=100000), 'device') if op['operation'] == 'IDLE']


@needs_data
def test_the_top_of_a_tree_is_most_of_each_node(served):
    for top in (50, 90):
        trees = [report(served, 'train_v5e', 'op_profile', limit=100000, **args) for args in ({}, {'most': str(top)})]
        assert any(n['code'] == 'top_only' for n in trees[1]['notes']) and not any(n['code'] == 'top_only' for n in trees[0]['notes'])
        times = []
        for doc in trees:
            nodes = doc['tree']['nodes']
            below = {}
            for n in nodes:
                if n['parent'] >= 0:
                    below.setdefault(tuple(path_of(nodes, n['parent'])), []).append(n['values'][0])
            times.append(below)
        assert times[1].keys() <= times[0].keys()
        for path, kept in times[1].items():
            whole = sorted(times[0][path], reverse=True)
            assert sorted(kept, reverse=True) == whole[:len(kept)]
            assert sum(whole[:len(kept) - 1]) < sum(whole) * top / 100 <= sum(kept)


def path_of(nodes, i):
    path = []
    while i >= 0:
        path.append(nodes[i]['name'])
        i = nodes[i]['parent']
    return path


@needs_data
@pytest.mark.parametrize('bad', [{'idle': '2'}, {'most': '0'}, {'most': '100'}, {'most': '9x'}])
def test_a_switch_of_the_op_profile_is_refused_when_it_is_none(served, bad):
    r = served.api('report', run='train_v5e', tool='op_profile', **bad)
    assert r.status == 400 and len(r.json()['detail']) > 10


@needs_data
def test_what_is_gained_at_the_roof_is_what_is_left_below_it(served):
    doc = report(served, 'train_v5e', 'roofline_model')
    gains = table(doc, 'gains')
    assert gains == sorted(gains, key=lambda g: -g['gain'])
    for g in gains:
        assert g['gain'] == pytest.approx(g['self_time'] * max(0, 1 - g['roof_utilization']), abs=1)
    total = sum(op['self_time'] for op in table(doc, 'ops') if op['self_time'])
    assert metrics(doc)['roof_gain'] == pytest.approx(sum(g['gain'] for g in gains) / total)


@needs_data
def test_steps_of_the_roofline_have_the_flops_and_bytes_of_their_ops(served):
    doc = report(served, 'train_v5e', 'roofline_model')
    by = {}
    for row in table(doc, 'programs'):
        by.setdefault(row['kind'], []).append(row)
    whole, counted, mean = (by[k][0] for k in ('total', 'hardware', 'average'))
    assert len(by['step']) == 4 and list(by) == ['total', 'hardware', 'average', 'step']
    time = sum(s['time'] for s in by['step'])
    for rate in ('flop_rate', 'hbm_rate'):
        assert sum(s[rate] * s['time'] for s in by['step']) / time == pytest.approx(mean[rate], rel=1e-6)
        assert counted[rate] == pytest.approx(whole[rate], rel=1e-3)  # the counters of this profile were made so
    for row in [whole, counted, mean, *by['step']]:
        assert row['intensity'] == pytest.approx(row['flop_rate'] / row['hbm_rate'])
    assert all(s['host'] and s['first_begin_ps'] > 0 for s in by['step'])
    gpu = report(served, 'synth_gpu_train', 'roofline_model')
    assert [r['kind'] for r in table(gpu, 'programs')] == ['total']
    assert 'no_program_steps' in {n['code'] for n in gpu['notes']}


@needs_data
@pytest.mark.parametrize('run, chip, mxus, sparse, told', [('train_v5e', 'TPU v5e', 4, 0, 'n/a: no counters'), ('synth_tpu_counters', 'TPU v6e', 2, 2, 'in the tables')])
def test_a_chip_has_the_units_that_are_published_and_says_why_they_are_not_counted(served, run, chip, mxus, sparse, told):
    units = {u['unit']: u for u in table(report(served, run, 'utilization_viewer'), 'chip_units') if u['chip'] == chip}
    assert len(units) == 4 and all(u['told'].startswith(told) for u in units.values())
    assert units['Matrix units (MXU)']['count'] == mxus and units['SparseCores']['count'] == sparse


@needs_data
def test_kernels_of_one_entry_are_called_by_what_they_run(served):
    rows = table(report(served, 'real_gpu_jax_te_fused_attn', 'kernel_stats'), 'kernels')
    names = {r['short_name'] for r in rows}
    assert {'ck_tile::FmhaFwdKernel', 'loop_reduce_fusion'} <= names and 'ck_tile::kentry' not in names
    assert all(r['demangled'] is None for r in rows)  # this profile has them as people write them


@needs_data
@pytest.mark.parametrize('bad', [{'sample': 'x'}, {'against': '1000'}, {'beside': 'hosts'}])
def test_a_sample_is_a_number_and_compared_with_another(served, bad):
    r = served.api('report', run='synth_tpu_counters', tool='perf_counters', **bad)
    assert r.status == 400 and len(r.json()['detail']) > 15


# --- n/a ---


@needs_data
@pytest.mark.parametrize('tool', OP_TOOLS)
def test_without_a_device_there_is_no_number_but_a_reason(served, tool):
    for m in report(served, 'jax_cpu_train', tool)['metrics']:
        if m['id'] in ('idle_fraction', 'duty_cycle', 'mxu_utilization', 'flop_rate', 'hbm_rate', 'device_time', 'kernel_time'):
            assert m['value'] is None and len(m['reason']) > 20, m


@needs_data
@pytest.mark.parametrize('tool', STEP_TOOLS)
def test_without_steps_there_is_no_step_time_but_how_to_mark_them(served, tool):
    doc = report(served, 'real_gpu_mi300_jax_attention', tool)
    for m in doc['metrics']:
        if m['id'].startswith('step') or m['id'] == 'input_fraction':
            assert m['value'] is None and 'StepTraceAnnotation' in m['reason'], m
    assert any(n['code'] == 'no_steps' for n in doc['notes'])


@needs_data
def test_without_hlo_there_is_no_rate(served):
    got = {m['id']: m for m in report(served, 'real_gpu_tf_multi_worker', 'roofline_model')['metrics']}
    for name in ('flop_rate', 'hbm_rate', 'mxu_utilization', 'hbm_utilization', 'arithmetic_intensity'):
        assert got[name]['value'] is None and 'HLO' in got[name]['reason'], got[name]


@needs_data
def test_steps_are_inferred_from_module_runs_and_labelled(served):
    doc = report(served, 'real_tpu_v6e_inference', 'overview_page')
    got = {m['id']: m for m in doc['metrics']}
    assert got['steps']['value'] == 100 and got['step_time_mean']['value'] == pytest.approx(784.145e9, rel=1e-5)
    assert all(got[k]['note'] == 'inferred from 100 runs of jit_f' for k in ('steps', 'step_time_mean'))
    assert any(n['code'] == 'steps_inferred' for n in doc['notes'])
    other = metrics(report(served, 'real_tpu_v6e_inference', 'overview_page', step_marker='jit__psum'))
    assert other['steps'] != 100


@needs_data
def test_a_host_event_can_be_the_marker(served):
    doc = report(served, 'jax_cpu_train', 'overview_page', step_marker='ParseArguments')
    got = {m['id']: m for m in doc['metrics']}
    assert got['steps']['value'] > 1 and 'runs of ParseArguments' in got['steps']['note']


# --- peaks ---


@needs_data
def test_a_peak_can_be_given_and_what_is_above_it_is_flagged(served, start):
    plain = metrics(report(served, 'train_v5e', 'hlo_stats'))
    doc = report(served, 'train_v5e', 'hlo_stats', peak='flops=3.94e14')
    other = metrics(doc)
    assert other['peak_flop_rate'] == 3.94e14 and other['mxu_utilization'] == pytest.approx(plain['mxu_utilization'] / 2)
    assert other['hbm_utilization'] == plain['hbm_utilization']
    low = report(served, 'train_v5e', 'hlo_stats', peak='flops=1e12')
    mxu = next(m for m in low['metrics'] if m['id'] == 'mxu_utilization')
    assert mxu['value'] > 1 and 'above 100 %' in mxu['note'] and any(n['code'] == 'above_peak' for n in low['notes'])
    assert served.api('report', run='train_v5e', tool='hlo_stats', peak='flops=fast').status == 400
    d = start('--logdir', os.path.join(TPU, 'wasteful_v5e'), '--peak', 'flops=1e15', '--peak=hbm=1e12')
    run = d.api('runs').json()['runs'][0]['run']
    got = metrics(report(d, run, 'overview_page', who='peaks'))
    assert (got['peak_flop_rate'], got['peak_hbm_rate']) == (1e15, 1e12)
    mine = metrics(report(d, run, 'overview_page', peak='hbm=2e12', who='peaks'))
    assert (mine['peak_flop_rate'], mine['peak_hbm_rate']) == (1e15, 2e12)


@needs_data
def test_chips_that_the_table_knows_have_their_published_peaks(served):
    for run, flops, hbm in (('train_v5e', 197e12, 819e9), ('train_v5p', 459e12, 2765e9), ('train_v6e_4host', 918e12, 1638e9),
                            ('train_v7x', 1153.5e12, 3686e9)):
        got = metrics(report(served, run, 'roofline_model'))
        assert (got['peak_flop_rate'], got['peak_hbm_rate']) == (flops, hbm), run
        assert got['ridge_intensity'] == pytest.approx(flops / hbm)


# --- hosts ---


@needs_data
def test_a_damaged_host_is_missing_and_the_others_are_there(tmp_path, start):
    run = tmp_path / 'run'
    run.mkdir()
    for i in (1, 2, 10):  # natural order: 2 before 10
        shutil.copy(os.path.join(TPU, 'wasteful_v5e', 'tpu-job-w-0.xplane.pb.gz'), run / ('w-%d.xplane.pb.gz' % i))
    (run / 'w-3.xplane.pb').write_bytes(b'\xff' * 4000)
    d = start('--logdir', str(tmp_path))
    for tool in OP_TOOLS:
        doc = report(d, 'run', tool, who=str(tmp_path))
        assert doc['hosts'] == ['w-1', 'w-2', 'w-10'], tool
        missing, = doc['missing_hosts']
        assert missing['host'] == 'w-3' and missing['code'] == 'corrupt_profile' and missing['detail']
        assert isinstance(missing['offset'], int)
    assert metrics(report(d, 'run', 'overview_page', who=str(tmp_path)))['cores'] == 3
    one = report(d, 'run', 'overview_page', host='w-2')
    assert one['hosts'] == ['w-2'] and one['missing_hosts'] == [] and metrics(one)['cores'] == 1
    r = d.api('report', run='run', tool='overview_page', host='w-3')
    assert r.status == 422 and r.json()['code'] == 'corrupt_profile'
    assert d.api('report', run='run', tool='overview_page', host='w-4').status == 404
    two = daemon.query(run='run', tool='overview_page') + '&host=w-10&host=w-1'
    assert d.request('GET', '/api/v1/report?' + two).json()['hosts'] == ['w-1', 'w-10']


@needs_data
def test_a_file_that_ends_early_counts_as_far_as_it_goes(tmp_path, start):
    path = os.path.join(DATA, 'real', 'tpu_v6e_inference.xplane.pb')
    with open(path, 'rb') as f:
        data = f.read()
    (tmp_path / 'cut.xplane.pb').write_bytes(data[:len(data) * 6 // 10])
    d = start('--logdir', str(tmp_path / 'cut.xplane.pb'))
    run = d.api('runs').json()['runs'][0]['run']
    doc = report(d, run, 'overview_page', who='cut')
    note = next(n for n in doc['notes'] if n['code'] == 'partial_profile')
    assert doc['missing_hosts'] == [] and re.search(r'byte \d+', note['text'])


@needs_data
def test_clocks_are_told_from_collectives_and_can_be_set(served):
    doc = report(served, 'train_v6e_4host', 'overview_page')
    assert metrics(doc)['clock_offset'] < 1e6
    assert all(abs(h['clock']) < 1e6 for h in table(doc, 'hosts'))
    given = report(served, 'train_v6e_4host', 'overview_page', offset='tpu-job-w-1:5000000')
    assert [h['clock'] for h in table(given, 'hosts')][1] == 5000000
    assert served.api('report', run='train_v6e_4host', tool='overview_page', offset='tpu-job-w-1').status == 400


# --- the command line ---


def cli(*words):
    done = subprocess.run([daemon.XPROFD, 'query', *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


@needs_data
def test_the_command_line_prints_the_same(served):
    code, out, _ = cli(os.path.join(TPU, 'train_v5e'), 'hlo_stats')
    assert code == 0 and json.loads(out) == report(served, 'train_v5e', 'hlo_stats')
    code, out, _ = cli(os.path.join(TPU, 'train_v5e'), 'hlo_stats', '--csv')
    lines = out.decode().splitlines()
    assert code == 0 and lines[0].startswith('"op","program_id","category","self_time (ps)"')
    assert len(lines) == 1 + report(served, 'train_v5e', 'hlo_stats')['tables'][0]['total_rows']
    assert served.api('report_csv', run='train_v5e', tool='hlo_stats').body == out
    code, out, _ = cli(os.path.join(TPU, 'train_v5e'), 'hlo_stats', '--csv', '--table-id', 'categories', 'limit=3')
    assert code == 0 and len(out.splitlines()) == 4
    code, _, err = cli(os.path.join(TPU, 'train_v5e'), 'hlo_stats', '--csv', '--table-id', 'nope')
    assert code == 1 and 'categories' in err


@needs_data
def test_people_see_units_reasons_and_rows():
    code, out, _ = cli(os.path.join(TPU, 'train_v5e'), 'overview_page', '--table', 'limit=5', '--peak', 'hbm=8.19e11')
    text = out.decode()
    assert code == 0 and all(w in text for w in ('273.667 ms', '197.000 TFLOP/s', 'as given with --peak', 'rows that are not shown'))
    code, out, _ = cli(os.path.join(DATA, 'profiles', 'jax_cpu_train'), 'overview_page', '--table')
    assert code == 0 and 'n/a' in out.decode() and 'host threads' in out.decode()


def test_a_tool_without_a_report_says_what_there_is(make, tmp_path):
    root = make('r', '--steps', '1', root=tmp_path)
    code, out, err = cli(root, 'trace_viewer')
    assert code == 1 and out == b'' and 'no report' in err and '--xprof' in err


# --- bounds ---


def test_answers_of_a_run_with_very_many_ops_are_small(make, tmp_path, start):
    root = make('many', '--steps', '40', '--hosts', '3', root=tmp_path)
    d = start('--logdir', root)
    for tool in tools():
        r = d.api('report', run='many', tool=tool)
        assert r.status in (200, 400, 404) and len(r.body) < MAX
        if r.status == 200:
            shape(r.json())
