"""The report `tools`: which tools have something to say about a run, and for the others why not."""
import daemon
import pytest
import xspace

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
