"""The port for operators: health that follows the process, and metrics that Prometheus can read."""
import re
import signal
import threading
import time

import pytest

import daemon

LINE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_]\w*="[^"\\\n]*"(?:,[a-zA-Z_]\w*="[^"\\\n]*")*\})? (\S+)$')


class Admin:
    """The same process at its other port."""

    def __init__(self, d):
        end = time.monotonic() + 10
        while not any('health and metrics' in line for line in d.lines):
            assert time.monotonic() < end
            time.sleep(0.01)
        self.port = int(re.search(r'health and metrics on port (\d+)', ''.join(d.lines)).group(1))

    request = daemon.Daemon.request
    get = daemon.Daemon.get


def metrics(admin):
    """{name and labels: value}; fails on what is not the text format."""
    r = admin.get('/metrics')
    assert r.status == 200 and r.type.startswith('text/plain')
    values, types, helps = {}, {}, set()
    for line in r.text().splitlines():
        if line.startswith('# HELP '):
            assert line.split()[2] not in helps, line
            helps.add(line.split()[2])
        elif line.startswith('# TYPE '):
            _, _, name, kind = line.split()
            assert name in helps and name not in types and kind in ('counter', 'gauge', 'histogram')
            types[name] = kind
        else:
            m = LINE.match(line)
            assert m, line
            name = m.group(1)
            base = re.sub('_(bucket|sum|count)$', '', name) if re.sub('_(bucket|sum|count)$', '', name) in types else name
            assert base in types, line
            assert types[base] != 'counter' or name.endswith('_total'), name
            key = name + (m.group(2) or '')
            assert key not in values, key
            values[key] = float(m.group(3))
    return values


@pytest.fixture
def server(start, make, tmp_path):
    make('run0', '--steps', '8', root=tmp_path)
    d = start('--logdir', tmp_path, '--admin-port', '0')
    d.admin = Admin(d)
    return d


def test_health_says_yes_while_it_serves(server):
    for path in ('/livez', '/readyz', '/healthz'):
        assert server.admin.get(path).status == 200
    assert server.admin.get('/').status == 404
    assert server.admin.request('POST', '/livez').status == 405


def test_browsers_never_see_it(server):
    for path in ('/metrics', '/livez', '/readyz'):
        assert server.get(path).status == 404


def test_answers_are_counted_by_route_and_status(server):
    for _ in range(3):
        assert server.api('tracks', run='run0', host='host-0').status == 200
    assert server.api('tracks', run='nope').status == 404
    assert server.compat('runs').status == 200
    m = metrics(server.admin)
    assert m['xprofd_answers_total{route="api/tracks",status="200"}'] == 3
    assert m['xprofd_answers_total{route="api/tracks",status="404"}'] == 1
    assert m['xprofd_answers_total{route="xprof/runs",status="200"}'] == 1
    assert m['xprofd_answer_seconds_count{route="api/tracks"}'] == 4
    assert m['xprofd_answer_seconds_bucket{route="api/tracks",le="+Inf"}'] == 4
    buckets = [v for k, v in m.items() if k.startswith('xprofd_answer_seconds_bucket{route="api/tracks"')]
    assert buckets == sorted(buckets)
    assert m['xprofd_http_requests_total'] == 5


def test_the_cache_shows(server):
    before = metrics(server.admin)
    server.loaded('run0')
    after = metrics(server.admin)
    assert before['xprofd_parts'] == 0 and after['xprofd_parts'] == 1
    assert after['xprofd_part_loads_total'] == 1
    assert 0 < after['xprofd_profile_bytes'] < after['xprofd_budget_bytes']
    assert after['process_resident_memory_bytes'] > 1e6 and after['process_open_fds'] > 3
    assert abs(after['process_start_time_seconds'] - time.time()) < 60


def test_a_request_cannot_make_new_series(server):
    before = set(metrics(server.admin))
    for i in range(20):
        server.get('/data/plugin/profile/nothing%d' % i)
        server.get('/api/v1/nothing%d' % i)
    assert {k for k in set(metrics(server.admin)) - before} == set()


def test_it_goes_on_serving_while_it_says_that_it_is_not_ready(start, make, tmp_path):
    make('run0', '--steps', '8', root=tmp_path)
    d = start('--logdir', tmp_path, '--admin-port', '0', '--drain-seconds', '2')
    admin = Admin(d)
    d.proc.send_signal(signal.SIGTERM)
    end = time.monotonic() + 10
    while admin.get('/readyz').status != 503:
        assert time.monotonic() < end
    assert (d.api('runs').status, admin.get('/livez').status) == (200, 200)
    assert d.proc.wait(20) == 0


def test_a_frontend_without_shards_is_not_ready(start, tmp_path):
    d = start('frontend', '--logdir', tmp_path, '--shards', 'dns:no-such-name.invalid:8792', '--admin-port', '0')
    admin = Admin(d)
    r = admin.get('/readyz')
    assert r.status == 503 and 'shard' in r.text()
    assert admin.get('/livez').status == 200
    assert metrics(admin)['xprofd_shards'] == 0


def test_roles_count_what_they_do(start, make, tmp_path):
    make('run0', '--steps', '8', root=tmp_path)
    shard = start('shard', '--logdir', tmp_path, '--admin-port', '0')
    front = start('frontend', '--logdir', tmp_path, '--shards', 'static:127.0.0.1:%d' % shard.port, '--admin-port', '0')
    assert front.api('tracks', run='run0', host='host-0').status == 200
    assert front.api('event', run='run0', host='host-0', id=99999999).status == 404
    f, s = metrics(Admin(front)), metrics(Admin(shard))
    assert f['xprofd_asks_total'] == 2 and f['xprofd_shards'] == 1 and f['xprofd_asks_failed_total'] == 0
    assert s['xprofd_answers_total{route="rpc/ask",status="200"}'] == 1
    assert s['xprofd_answers_total{route="rpc/ask",status="404"}'] == 1
    assert 'xprofd_parts' not in f and s['xprofd_parts'] == 1


def test_metrics_can_be_read_while_much_is_asked(server):
    server.loaded('run0')
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            server.api('window', run='run0', host='host-0', px=1500)
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    counts = []
    for _ in range(20):
        counts.append(metrics(server.admin)['xprofd_answer_seconds_count{route="api/tracks"}'])
    stop.set()
    for t in threads:
        t.join(20)
    assert counts == sorted(counts)


def test_a_taken_admin_port_is_named(server, tmp_path):
    code, _, err = daemon.run_to_end('--logdir', tmp_path, '--port', '0', '--admin-port', server.admin.port)
    assert code == 2 and str(server.admin.port) in err
