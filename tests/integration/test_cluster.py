"""A frontend and its shards as processes: the same answers, and none lost while shards come, go, die and hang."""
import gzip
import http.client
import os
import signal
import socket
import threading
import time

import pytest

import daemon
from test_admin import Admin, metrics

KEY = 'a key that all of them share\n'
RUNS = 6


class Cluster:
    """n shards that keep their names and ports over restarts, and a frontend."""

    def __init__(self, root, folder, n, key=KEY):
        self.root, self.folder = str(root), str(folder)
        self.key = self.key_file('key', key)
        self.shards = [self.shard(i) for i in range(n)]
        self.frontend = self.front()

    def key_file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf8') as f:
            f.write(text)
        return path

    def shard(self, i, port=0, key=None):
        return daemon.Daemon('shard', '--logdir', self.root, '--identity', 'shard-%d' % i, '--rpc-key', key or self.key,
                             '--memory-budget', '256MB', '--threads', '2', port=port)

    def front(self, key=None):
        spec = ','.join('shard-%d=127.0.0.1:%d' % (i, s.port) for i, s in enumerate(self.shards))
        d = daemon.Daemon('frontend', '--logdir', self.root, '--shards', 'static:' + spec, '--rpc-key', key or self.key,
                          '--admin-port', '0')
        d.admin = Admin(d)
        return d

    def again(self, i):
        self.shards[i] = self.shard(i, port=self.shards[i].port)

    def stop(self):
        self.frontend.stop()
        for s in self.shards:
            try:
                os.kill(s.pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
            s.stop(signal.SIGKILL)


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    path = tmp_path_factory.mktemp('cluster')
    for i in range(RUNS):
        daemon.generate(path, 'run%d' % i, '--steps', '8')
    return path


@pytest.fixture
def cluster(root, tmp_path):
    c = Cluster(root, tmp_path, 3)
    yield c
    c.stop()


def asks(run):
    """(path, how two answers are the same)"""
    q = daemon.query
    host = 'host-0'
    return ['/api/v1/tracks?' + q(run=run, host=host, wait='all'),
            '/api/v1/window?' + q(run=run, host=host, px=1500, wait='all'),
            '/api/v1/search?' + q(run=run, host=host, q='fusion'),
            '/api/v1/aggregate?' + q(run=run, host=host),
            daemon.COMPAT + '/data?' + q(run=run, tag='trace_viewer@', hosts=host, resolution=8000),
            daemon.COMPAT + '/data?' + q(run=run, tag='overview_page', host=host),
            daemon.COMPAT + '/data?' + q(run=run, tag='op_profile', host=host),
            daemon.COMPAT + '/run_tools?' + q(run=run)]


def plain(value):
    """An ETag is weak where the server that sends it made the gzip, which here is the shard's."""
    return value[2:] if value and value.startswith('W/') else value


def text_of(reply):
    """The same text may be compressed in more than one way."""
    return gzip.decompress(reply.body) if reply.headers.get('content-encoding') == 'gzip' else reply.body


def test_the_answers_are_those_of_one_process(cluster, root, start):
    alone = start('--logdir', root)
    for run in ('run0', 'run1', 'run2'):
        for path in asks(run):
            for headers in ({}, {'accept-encoding': 'gzip'}):
                here, there = cluster.frontend.get(path, headers), alone.get(path, headers)
                assert here.status == there.status == 200, path
                assert text_of(here) == text_of(there), path
                for name in ('content-type', 'content-encoding', 'etag'):
                    assert plain(here.headers.get(name)) == plain(there.headers.get(name)), (path, name)


@pytest.mark.parametrize('path, status, code', [
    ('window?run=run0&host=host-0&px=0', 400, 'bad_request'),
    ('event?run=run0&host=host-0&id=999999999', 404, 'not_found'),
    ('tracks?run=nope', 404, 'not_found'),
])
def test_what_is_wrong_is_said_as_by_one_process(cluster, path, status, code):
    daemon.sentence(cluster.frontend.get('/api/v1/' + path), status, code)


def test_a_damaged_profile_is_named_by_its_byte(start, tmp_path):
    folder = daemon.run_dir(tmp_path, 'bad')
    os.makedirs(folder)
    with open(os.path.join(folder, 'host-0.xplane.pb'), 'wb') as f:
        f.write(b'\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff')
    c = Cluster(tmp_path, tmp_path, 1)
    try:
        alone = start('--logdir', tmp_path)
        paths = ['/api/v1/search?run=bad&host=host-0&q=x', '/api/v1/tracks?run=bad&host=host-0']
        for path in paths:
            assert c.frontend.get(path).body == alone.get(path).body
    finally:
        c.stop()


GZIP = {'accept-encoding': 'gzip'}
LAST_RESORT_S = 14  # after 15 s a shard that hangs is given up though nobody else can be asked


class Load:
    """Asks without end on several threads; remembers what was no good answer, and the slowest."""

    def __init__(self, frontend, want, threads=4):
        self.frontend, self.want, self.stop, self.wrong, self.n, self.slowest = frontend, want, False, [], 0, 0.0
        self.threads = [threading.Thread(target=self.ask, args=(i,)) for i in range(threads)]
        for t in self.threads:
            t.start()

    def ask(self, i):
        paths = list(self.want)
        while not self.stop:
            path = paths[(i * 7 + self.n) % len(paths)]
            self.n += 1
            began = time.monotonic()
            try:
                r = self.frontend.get(path + '&again=%d' % self.n, GZIP, timeout=30)
                if r.status != 200 or text_of(r) != self.want[path]:
                    self.wrong.append((path, r))
            except (OSError, ValueError, http.client.HTTPException) as e:
                self.wrong.append((path, e))
            self.slowest = max(self.slowest, time.monotonic() - began)

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join(60)
            assert not t.is_alive()


@pytest.fixture
def load(cluster):
    want = {}
    for i in range(RUNS):
        for path in asks('run%d' % i)[1:6]:
            r = cluster.frontend.get(path, GZIP)
            assert len(r.body) < 1 << 20  # held until whole
            want[path] = text_of(r)
    running = Load(cluster.frontend, want)
    yield running
    running.end()


def quiet(load, n=25):
    """So many more requests were begun, and nothing was wrong."""
    goal, end = load.n + n, time.monotonic() + 30
    while load.n < goal and not load.wrong:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not load.wrong, load.wrong[:3]


def test_a_shard_that_is_killed_loses_no_request(cluster, load):
    for i in (0, 1, 2):
        cluster.shards[i].stop(signal.SIGKILL)
        quiet(load, 40)
        cluster.again(i)
        quiet(load)
    load.end()
    assert not load.wrong
    assert load.slowest < LAST_RESORT_S
    assert cluster.frontend.api('status').json()['retries'] > 0


def test_two_of_three_may_go_and_come_back(cluster, load):
    cluster.shards[0].stop(signal.SIGKILL)
    cluster.shards[2].stop(signal.SIGKILL)
    quiet(load, 40)
    cluster.again(0)
    cluster.again(2)
    cluster.shards[1].stop(signal.SIGKILL)
    quiet(load, 40)
    load.end()
    assert not load.wrong


def test_a_shard_that_ends_in_good_order_loses_no_request(cluster, load):
    for i in (0, 1, 2):
        assert cluster.shards[i].stop() == 0
        quiet(load, 40)
        cluster.again(i)
        quiet(load)
    load.end()
    assert not load.wrong


def test_a_shard_that_hangs_is_left_for_another(cluster, load):
    os.kill(cluster.shards[0].pid, signal.SIGSTOP)
    quiet(load, 100)  # each waits for it once, until it is known to hang
    os.kill(cluster.shards[0].pid, signal.SIGCONT)
    load.end()
    assert not load.wrong
    assert load.slowest < LAST_RESORT_S


def connected(port):
    """How many connections there are to the port, as those see it that made them."""
    with open('/proc/net/tcp', encoding='ascii') as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return sum(r[2] == '0100007F:%04X' % port and r[3] == '01' for r in rows)


def test_a_shard_that_is_late_is_not_waited_for(cluster):
    """A second one is asked as well, its answer is taken, and the first ask is ended."""
    def window(i):
        r = cluster.frontend.api('window', run='run4', host='host-0', px=300, t0=i, t1=10 ** 9, wait='all')
        assert r.status == 200
        return r.body

    def won():
        return metrics(cluster.frontend.admin)['xprofd_asks_second_won_total']

    def answered_without(shard):
        had, before = connected(shard.port), won()
        assert window(0) == want
        if won() == before:
            return False  # it is not the one that is asked
        end = time.monotonic() + 20
        while connected(shard.port) > max(had - 1, 0):
            assert time.monotonic() < end, 'it is asked still'
            time.sleep(0.01)
        return True
    want = window(0)
    for _ in range(20):
        for i in range(40):  # it is known how long they take, and a second ask is earned
            window(i)
        for shard in cluster.shards:
            os.kill(shard.pid, signal.SIGSTOP)
            try:
                if answered_without(shard):
                    return
            finally:
                os.kill(shard.pid, signal.SIGCONT)
    raise AssertionError('no second one was asked')


def test_a_frontend_holds_nothing(cluster):
    before = {path: cluster.frontend.get(path).body for path in asks('run3')}
    cluster.frontend.stop(signal.SIGKILL)
    cluster.frontend = cluster.front()
    for path, body in before.items():
        assert cluster.frontend.get(path).body == body


def test_without_shards_it_says_so_and_when_to_try_again(cluster):
    for s in cluster.shards:
        s.stop(signal.SIGKILL)
    r = cluster.frontend.api('tracks', run='run0', host='host-0')
    daemon.sentence(r, 503, 'busy', 'shard')
    assert 1 <= int(r.headers['retry-after']) <= 30
    assert cluster.frontend.api('runs').status == 200  # the list needs no shard
    cluster.again(1)
    assert cluster.frontend.api('tracks', run='run0', host='host-0').status == 200


def test_keys_change_with_an_overlap_and_a_wrong_one_is_refused(cluster):
    stranger = cluster.front(key=cluster.key_file('wrong', 'quite another key, as long\n'))
    both = cluster.front(key=cluster.key_file('both', 'quite another key, as long\n' + KEY))
    try:
        assert stranger.api('tracks', run='run0', host='host-0').status >= 500
        assert both.api('tracks', run='run0', host='host-0').status >= 500  # it signs with the first
        for i in range(3):
            cluster.shards[i].stop()
            cluster.shards[i] = cluster.shard(i, cluster.shards[i].port, os.path.join(cluster.folder, 'both'))
        assert cluster.frontend.api('tracks', run='run0', host='host-0').status == 200
        assert both.api('tracks', run='run0', host='host-0').status == 200
    finally:
        stranger.stop()
        both.stop()


@pytest.mark.parametrize('method, path, status', [
    ('GET', '/', 404), ('GET', '/api/v1/runs', 404), ('GET', '/rpc/v1/ask', 404), ('POST', '/rpc/v1/ask', 403),
    ('GET', '/rpc/v1/hello', 200), ('POST', '/rpc/v1/hello', 404), ('DELETE', '/rpc/v1/ask', 404)])
def test_a_shard_answers_only_frontends(cluster, method, path, status):
    body = b'\x0a\x06tracks' if method == 'POST' else None
    r = cluster.shards[0].request(method, path, body=body)
    assert r.status == status, r
    forged = {'xprofd-auth': '1800000000.' + '0' * 64}
    assert cluster.shards[0].request(method, path, headers=forged, body=body).status == status


def overhear(cluster):
    """(headers, body) of an ask, as somebody on the way between a frontend and a shard sees it."""
    with socket.create_server(('127.0.0.1', 0)) as spy:
        spy.settimeout(20)
        front = daemon.Daemon('frontend', '--logdir', cluster.root, '--rpc-key', cluster.key, '--shards',
                              'static:spy=127.0.0.1:%d' % spy.getsockname()[1])
        asker = socket.create_connection(('127.0.0.1', front.port), timeout=20)
        asker.sendall(b'GET /api/v1/tracks?run=run0&host=host-0 HTTP/1.1\r\nHost: localhost\r\n\r\n')
        conn = spy.accept()[0]
        with conn, conn.makefile('rb') as f:
            line = f.readline()
            headers = dict(iter(lambda: tuple(f.readline().decode().strip().lower().split(': ', 1)), ('',)))
            body = f.read(int(headers['content-length']))
        front.stop(signal.SIGKILL)
        asker.close()
    assert line.startswith(b'POST /rpc/v1/ask ')
    return {k: v for k, v in headers.items() if k.startswith('xprofd-')}, body


def test_what_is_overheard_can_be_sent_again_and_no_other_ask_be_made_of_it(cluster):
    """For two minutes: test_sign.c has that."""
    headers, body = overhear(cluster)
    sign = headers['xprofd-auth']
    for _ in range(2):
        r = cluster.shards[0].request('POST', '/rpc/v1/ask', headers, body)
        assert (r.status, r.headers['xprofd-status']) == (200, 'ok')
    at, mac = sign.split('.')
    for auth, sent in ((sign, body.replace(b'run0', b'run1')), (sign, body + b'\x0a\x06window'), ('%d.%s' % (int(at) + 1, mac), body),
                       (sign[:-1], body), (at + '.' + '0' * 64, body), ('', body)):
        assert cluster.shards[0].request('POST', '/rpc/v1/ask', dict(headers, **{'xprofd-auth': auth}), sent).status == 403


@pytest.mark.parametrize('flags, word', [
    (('frontend', '--logdir', '.'), '--shards'),
    (('frontend', '--logdir', '.', '--shards', 'nonsense'), 'static:'),
    (('frontend', '--logdir', '.', '--shards', 'static:a:1', '--rpc-key', '/nowhere'), 'nowhere'),
    (('shard', '--logdir', '.', '--host', '0.0.0.0'), '--rpc-key'),
    (('shard', '--logdir', '.', '--shards', 'static:a:1'), '--shards'),
    (('--logdir', '.', '--identity', 'x'), '--identity'),
    (('--logdir', '.', '--rpc-key', 'x'), '--rpc-key'),
])
def test_wrong_flags_of_the_roles_are_named(flags, word):
    code, _, err = daemon.run_to_end(*flags)
    assert code == 2 and word in err, err


@pytest.fixture(scope='module')
def big(tmp_path_factory):
    """A run whose whole trace is an answer of many MB."""
    path = tmp_path_factory.mktemp('big')
    daemon.generate(path, 'big', '--size', '2MB')
    return path


@pytest.fixture
def big_cluster(big, tmp_path):
    c = Cluster(big, tmp_path, 2)
    yield c
    c.stop()


WHOLE = daemon.COMPAT + '/data?' + daemon.query(run='big', tag='trace_viewer', host='host-0')


def test_a_large_answer_is_passed_on_whole(big_cluster, big, start):
    alone = start('--logdir', big)
    for headers in ({}, {'accept-encoding': 'gzip'}):
        here, there = big_cluster.frontend.get(WHOLE, headers), alone.get(WHOLE, headers)
        assert len(there.body) > (1 << 20)
        assert here.status == there.status == 200
        assert text_of(here) == text_of(there)
        assert here.headers.get('content-length') in (None, str(len(here.body)))
    head = big_cluster.frontend.request('HEAD', WHOLE)
    assert head.status == 200 and head.body == b''


def slow_reader(port, path, *headers):
    """Sent, and nothing read yet."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    s.settimeout(30)
    s.connect(('127.0.0.1', port))
    s.sendall('\r\n'.join(['GET %s HTTP/1.1' % path, 'Host: localhost', 'Connection: close', *headers, '', '']).encode())
    return s


def read_all(s):
    """(head, body as it should be); raises IncompleteRead or OSError when it breaks off."""
    answer = http.client.HTTPResponse(s)
    answer.begin()
    body = answer.read()
    s.close()
    return answer, body


def test_slow_readers_of_large_answers_cost_little_and_get_all(big_cluster):
    want = big_cluster.frontend.get(WHOLE).body
    for headers in ([], ['Accept-Encoding: gzip']):
        before = big_cluster.frontend.status_kb('VmRSS')
        readers = [slow_reader(big_cluster.frontend.port, WHOLE, *headers) for _ in range(8)]
        for s in readers:
            s.recv(1, socket.MSG_PEEK)
        time.sleep(0.5)
        assert (big_cluster.frontend.status_kb('VmRSS') - before) / 1024 < 2 * len(readers) + 8  # the relay's, h2o's, and what all share
        for s in readers:
            answer, body = read_all(s)
            assert (gzip.decompress(body) if answer.getheader('content-encoding') == 'gzip' else body) == want


def test_half_of_a_large_answer_is_no_answer(big_cluster):
    assert big_cluster.frontend.get(WHOLE).status == 200  # made, so that all of the rest is its way
    readers = [slow_reader(big_cluster.frontend.port, WHOLE) for _ in range(3)]  # more than sockets hold
    for s in readers:
        s.recv(1, socket.MSG_PEEK)
    for s in big_cluster.shards:
        s.stop(signal.SIGKILL)
    for s in readers:
        with pytest.raises((http.client.IncompleteRead, OSError)):
            read_all(s)


def test_clients_that_leave_a_large_answer_leave_nothing_behind(big_cluster):
    for _ in range(30):
        s = slow_reader(big_cluster.frontend.port, WHOLE)
        s.recv(1000)
        s.close()
    assert big_cluster.frontend.get(WHOLE).status == 200
    assert big_cluster.frontend.stop() == 0  # at once: nothing is waited for


def test_a_frontend_that_ends_finishes_what_it_passes_on(big_cluster):
    want = big_cluster.frontend.get(WHOLE).body
    s = slow_reader(big_cluster.frontend.port, WHOLE)
    s.recv(1, socket.MSG_PEEK)
    big_cluster.frontend.proc.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert read_all(s)[1] == want
    assert big_cluster.frontend.proc.wait(20) == 0
