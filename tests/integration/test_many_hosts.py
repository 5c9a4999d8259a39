"""A session of many hosts on several shards: the bytes of one process, each host mapped by its owner, whichever dies."""
import gzip
import os
import re
import signal
import threading
import time

import pytest

import daemon
from test_admin import Admin

HOSTS = 8
SHARDS = 4
KEY = 'a key that all of them share\n'
TOOLS = ['overview_page', 'op_profile', 'input_pipeline_analyzer', 'framework_op_stats', 'hlo_stats', 'kernel_stats',
         'pod_viewer', 'roofline_model', 'inference_profile', 'utilization_viewer', 'smart_suggestion']


GZIP = {'accept-encoding': 'gzip'}


def text_of(reply):
    return gzip.decompress(reply.body) if reply.headers.get('content-encoding') == 'gzip' else reply.body


class Shard(daemon.Daemon):
    def __init__(self, *flags):
        super().__init__('shard', *flags, '--admin-port', '0')
        self.admin = Admin(self)

    def metric(self, name):
        m = re.search(r'^xprofd_%s (\d+)$' % name, self.admin.get('/metrics').text(), re.M)
        return int(m.group(1))


class Cluster:
    def __init__(self, root, key):
        flags = ('--logdir', root, '--rpc-key', key, '--threads', '2', '--memory-budget', '256MB')
        self.shards = [Shard(*flags, '--identity', 'shard-%d' % i) for i in range(SHARDS)]
        spec = ','.join('shard-%d=127.0.0.1:%d' % (i, s.port) for i, s in enumerate(self.shards))
        self.frontend = daemon.Daemon('frontend', '--logdir', root, '--shards', 'static:' + spec, '--rpc-key', key)

    def metrics(self, name):
        return [s.metric(name) for s in self.shards if s.alive()]

    def stop(self):
        self.frontend.stop()
        for s in self.shards:
            if s.alive():
                os.kill(s.pid, signal.SIGCONT)
            s.stop(signal.SIGKILL)


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    path = tmp_path_factory.mktemp('many')
    for i in range(6):
        daemon.generate(path, 'run%d' % i, '--hosts', str(HOSTS), '--steps', '4', '--seed', str(i + 1))
    daemon.generate(path, 'damaged', '--hosts', '4', '--steps', '4')
    whole = daemon.profile(path, 'damaged', 'host-1')
    with open(whole, 'rb') as f:
        half = f.read()[:os.path.getsize(whole) // 2]
    for host, bytes_ in (('host-1', half), ('host-2', b'\x0a' + b'\xff' * 11)):
        with open(daemon.profile(path, 'damaged', host), 'wb') as f:
            f.write(bytes_)
    daemon.generate(path, 'cut', '--hosts', '4', '--steps', '40')
    for i in range(4):
        whole = daemon.profile(path, 'cut', 'host-%d' % i)
        os.truncate(whole, os.path.getsize(whole) // 2)
    return path


@pytest.fixture(scope='module')
def alone(root):
    d = daemon.Daemon('--logdir', root, '--threads', '2')
    yield d
    d.stop()


def cluster_of(root, folder):
    (folder / 'key').write_text(KEY)
    c = Cluster(root, folder / 'key')
    yield c
    c.stop()


@pytest.fixture(scope='module')
def cluster(root, tmp_path_factory):
    yield from cluster_of(root, tmp_path_factory.mktemp('key'))


@pytest.fixture
def mortal(root, tmp_path):
    """A cluster for one test, which may kill its shards."""
    yield from cluster_of(root, tmp_path)


def compat(run, tool, what='data'):
    return '%s/%s?%s' % (daemon.COMPAT, what, daemon.query(run=run, tag=tool, host='ALL_HOSTS'))


def report(run, tool, what='report'):
    return '/api/v1/%s?%s' % (what, daemon.query(run=run, tool=tool))


@pytest.mark.parametrize('tool', TOOLS)
def test_a_tool_says_what_one_process_says(cluster, alone, tool):
    for path in (compat('run0', tool), compat('run0', tool, 'data_csv'), report('run0', tool),
                 report('damaged', tool), compat('damaged', tool)):
        here, there = cluster.frontend.get(path), alone.get(path)
        assert (here.status, here.type) == (there.status, there.type), path
        assert text_of(here) == text_of(there), path


def test_a_range_is_the_same_wherever_its_hosts_are(cluster, alone):
    at = alone.get(report('run0', 'overview_page') + '&steps=1-2').json()['range']
    for part, status in (('&steps=1-2', 200), ('&t0=%d&t1=%d' % (at['t0'] + 1, at['t1'] - 1), 200), ('&steps=77', 400),
                         ('&t0=%d&t1=%d' % (10 ** 16, 10 ** 17), 400)):
        for tool in ('overview_page', 'hlo_stats', 'graph_viewer'):
            path = report('run0', tool) + part
            here, there = cluster.frontend.get(path), alone.get(path)
            assert here.status == there.status == (200 if tool == 'graph_viewer' else status), (path, there.json())
            assert text_of(here) == text_of(there), path


def test_hosts_are_mapped_by_their_owners_and_no_shard_has_more_than_its_share(cluster):
    maps, loads, late = (cluster.metrics(m) for m in ('hosts_mapped_total', 'part_loads_total', 'asks_second_total'))
    gathered = sum(cluster.metrics('hosts_gathered_total'))
    assert cluster.frontend.get(report('run1', 'overview_page')).status == 200
    mapped = [b - a for a, b in zip(maps, cluster.metrics('hosts_mapped_total'))]
    twice = sum(cluster.metrics('asks_second_total')) - sum(late)  # on a machine that is busy
    assert HOSTS <= sum(mapped) <= HOSTS + twice and max(mapped) <= 3 + twice, mapped  # 1.25 x the mean, rounded up
    assert sum(cluster.metrics('hosts_gathered_total')) - gathered >= HOSTS - 3
    # The pages of a host come from where its profile is already.
    for i in range(HOSTS):
        for what in ('tracks', 'window'):
            q = daemon.query(run='run1', host='host-%d' % i, **({'px': 100} if what == 'window' else {}))
            assert cluster.frontend.get('/api/v1/%s?%s' % (what, q)).status == 200
    assert HOSTS <= sum(cluster.metrics('part_loads_total')) - sum(loads) <= HOSTS + twice


TRACES = [{}, {'resolution': 500}, {'start_time_ms': 1, 'end_time_ms': 4}, {'format': 'pb'}, {'search_prefix': 'fusion'},
          {'search_prefix': 'fusion.12', 'search_metadata': 'true'}, {'hosts': 'host-5,host-2,host-7'}, {'hosts': 'host-1,nobody'}]


def trace(run, **kw):
    return '%s/data?%s' % (daemon.COMPAT, daemon.query(run=run, tag='trace_viewer@', **kw))


@pytest.mark.parametrize('what', TRACES, ids=str)
def test_a_trace_of_all_hosts_says_what_one_process_says(cluster, alone, what):
    maps, late = cluster.metrics('hosts_mapped_total'), sum(cluster.metrics('asks_second_total'))
    here, there = cluster.frontend.get(trace('run4', **what), GZIP), alone.get(trace('run4', **what), GZIP)
    assert (here.status, here.type) == (there.status, there.type)
    assert text_of(here) == text_of(there) and (here.status != 200 or len(text_of(here)) > 1000)
    if not what:  # each host's by its owner, and no shard has more than its share
        mapped = [b - a for a, b in zip(maps, cluster.metrics('hosts_mapped_total'))]
        twice = sum(cluster.metrics('asks_second_total')) - late
        assert HOSTS <= sum(mapped) <= HOSTS + twice and max(mapped) <= 3 + twice, mapped
    assert text_of(cluster.frontend.get(trace('damaged'))) == text_of(alone.get(trace('damaged'))) == b'No Data'


def test_where_nothing_is_captured_nothing_is_ended(cluster, alone):
    for d in (cluster.frontend, alone):
        got = d.request('DELETE', '/api/v1/captures?id=' + '0' * 16, {'x-xprofd': '1'})
        daemon.sentence(got, 404, 'not_found', 'no captures here')
        assert d.alive()


@pytest.mark.parametrize('route', ['run_tools', 'module_list'])
@pytest.mark.parametrize('run', ['run5', 'damaged'])
def test_lists_of_a_run_say_what_one_process_says(cluster, alone, route, run):
    path = '%s/%s?run=%s' % (daemon.COMPAT, route, run)
    here, there = cluster.frontend.get(path), alone.get(path)
    assert (here.status, here.type, text_of(here)) == (there.status, there.type, text_of(there))
    assert here.status == 200 and (len(text_of(here)) > 20) == (run == 'run5'), here


def test_one_process_shows_a_trace_of_more_hosts_than_it_has_memory_for(alone, start, tmp_path):
    """Hosts are looked at one after the other: what is above the budget for all together is answered."""
    daemon.generate(tmp_path, 'large', '--hosts', '4', '--steps', '160', '--seed', '3')
    whole = start('--logdir', tmp_path, '--threads', '2', '--memory-budget', '2GB')
    want = text_of(whole.get(trace('large', resolution=1000), GZIP, timeout=120))
    need = whole.api('status').json()['profile_bytes']
    whole.stop()
    small = start('--logdir', tmp_path, '--threads', '2', '--memory-budget', str(need * 5 // 8))
    got = small.get(trace('large', resolution=1000), GZIP, timeout=120)
    assert got.status == 200 and text_of(got) == want
    assert small.api('status').json()['profile_bytes'] < need * 3 // 4


def test_hosts_that_cannot_be_read_are_named(cluster):
    r = cluster.frontend.get(report('damaged', 'overview_page')).json()
    missing, = r['missing_hosts']
    assert missing['host'] == 'host-2' and missing['code'] == 'corrupt_profile' and missing['detail'], missing
    assert any('host-1' in note['text'] for note in r['notes']), r['notes']  # half of it could be read


def test_partials_that_were_kept_still_say_that_their_hosts_are_cut(root, cluster, alone, tmp_path):
    """Without the shard that joined them another does, and their owners know them by then."""
    key = tmp_path / 'key'
    key.write_text(KEY)
    path = report('cut', 'op_profile')
    want = text_of(alone.get(path))
    assert want.count(b'partial_profile') == 4
    for i in range(SHARDS):
        left = ','.join('shard-%d=127.0.0.1:%d' % (k, s.port) for k, s in enumerate(cluster.shards) if k != i)
        with daemon.Daemon('frontend', '--logdir', root, '--shards', 'static:' + left, '--rpc-key', key) as frontend:
            assert text_of(frontend.get(path)) == want, i


def owner_of_most(cluster, run):
    """Who mapped the most hosts of the run for another shard, by looking."""
    before = cluster.metrics('hosts_mapped_total')
    assert cluster.frontend.get(report(run, 'hlo_stats')).status == 200
    mapped = [b - a for a, b in zip(before, cluster.metrics('hosts_mapped_total'))]
    asked = [s.metric('asks_total') for s in cluster.shards]
    coordinator = max(range(SHARDS), key=lambda i: asked[i] - cluster.asked[i])
    return max((i for i in range(SHARDS) if i != coordinator), key=lambda i: mapped[i])


def test_an_owner_that_is_killed_in_the_middle_costs_no_host(mortal, alone):
    mortal.asked = [s.metric('asks_total') for s in mortal.shards]
    victim = mortal.shards[owner_of_most(mortal, 'run2')]
    paths = [report('run2', 'op_profile'), compat('run2', 'framework_op_stats')]
    os.kill(victim.pid, signal.SIGSTOP)  # its maps are under way and stay so
    got = {}
    threads = [threading.Thread(target=lambda p=p: got.update({p: mortal.frontend.get(p)})) for p in paths]
    for t in threads:
        t.start()
    time.sleep(0.4)
    victim.stop(signal.SIGKILL)
    for t in threads:
        t.join(30)
        assert not t.is_alive()
    for path in paths:
        want = alone.get(path)
        assert got[path].status == want.status == 200
        assert text_of(got[path]) == text_of(want)


def another_build(folder):
    """The program with another build id: as it is while an installation is upgraded."""
    with open(daemon.XPROFD, 'rb') as f:
        program = f.read()
    with daemon.Daemon('shard', '--logdir', folder) as d:
        build = re.search(r'^build ([0-9a-f]+)$', d.get('/rpc/v1/hello').text(), re.M).group(1)
    other = os.path.join(str(folder), 'xprofd')
    assert program.count(bytes.fromhex(build)) == 1
    with open(other, 'wb') as f:
        f.write(program.replace(bytes.fromhex(build), bytes.fromhex(build)[::-1]))
    os.chmod(other, 0o755)
    return other


def test_two_builds_side_by_side_say_what_one_says(root, alone, start, tmp_path):
    """Partials are of one build: what the other would map is mapped by who was asked, whichever that is."""
    other = another_build(tmp_path)
    shards = [start('shard', '--logdir', root, '--identity', 'shard-%d' % i, '--threads', '2', program=p)
              for i, p in enumerate((daemon.XPROFD, other))]
    spec = 'static:' + ','.join('shard-%d=127.0.0.1:%d' % (i, s.port) for i, s in enumerate(shards))
    for program in (daemon.XPROFD, other):
        frontend = start('frontend', '--logdir', root, '--shards', spec, program=program)
        for path in [report('run%d' % i, 'overview_page') for i in range(4)] + [trace('run0')]:
            here, there = frontend.get(path), alone.get(path)
            assert here.status == there.status == 200 and text_of(here) == text_of(there)


def test_with_one_shard_left_it_maps_them_all(mortal, alone):
    for s in mortal.shards[1:]:
        s.stop(signal.SIGKILL)
    path = report('run3', 'overview_page')
    here, there = mortal.frontend.get(path), alone.get(path)
    assert here.status == there.status == 200
    assert text_of(here) == text_of(there)
