"""A fleet under load while it grows from one shard to four and shrinks again, shards are killed and stopped, and a frontend is
started anew: no request is lost that a retry could have served, and no answer is wrong. Members come from the fake API server."""
import gzip
import http.client
import os
import signal
import threading
import time

import daemon
from test_k8s import TOKEN, Api, certificate, endpoint_slice, wait_for

RUNS, HOSTS = 3, 4
GZIP = {'accept-encoding': 'gzip'}


def text_of(reply):
    return gzip.decompress(reply.body) if reply.headers.get('content-encoding') == 'gzip' else reply.body


class Fleet:
    """Shards at 127.0.0.1, .2, ... and the same port, as a service's pods are."""

    def __init__(self, root, folder):
        self.root, self.folder, self.shards, self.peak = root, str(folder), {}, 0
        cert, key = certificate(self.folder, 'server')
        os.rename(cert, os.path.join(self.folder, 'ca.crt'))
        with open(os.path.join(self.folder, 'token'), 'w', encoding='utf8') as f:
            f.write(TOKEN)
        with open(os.path.join(self.folder, 'namespace'), 'w', encoding='utf8') as f:
            f.write('perf')
        self.api = Api(os.path.join(self.folder, 'ca.crt'), key)
        self.port = 0
        self.add(0)
        self.port = self.shards[0].port
        self.frontends = [self.front(), self.front()]

    def front(self):
        env = dict(os.environ, KUBERNETES_SERVICE_HOST='127.0.0.1', KUBERNETES_SERVICE_PORT=str(self.api.port),
                   XPROFD_SERVICEACCOUNT=self.folder)
        d = daemon.Daemon('frontend', '--logdir', self.root, '--shards', 'k8s:shards:%d' % self.port, env=env)
        wait_for(lambda: d.api('status').json()['shards'] > 0)
        return d

    def tell(self):  # who is ready now
        self.api.change(endpoint_slice('shards-a', *['127.0.0.%d' % (i + 1) for i in sorted(self.shards)]))

    def settled(self):
        wait_for(lambda: all(f.api('status').json()['shards'] == len(self.shards) for f in self.frontends))

    def add(self, i):
        self.shards[i] = daemon.Daemon('shard', '--logdir', self.root, '--host', '127.0.0.%d' % (i + 1), '--identity',
                                       'pod-%d' % i, '--threads', '2', '--memory-budget', '128MB', port=self.port)
        self.tell()

    def remove(self, i):
        """As a pod ends: not ready first, then told to."""
        d = self.shards.pop(i)
        self.tell()
        self.settled()
        assert d.stop() == 0

    def stop(self):
        for d in self.frontends + list(self.shards.values()):
            if d.alive():
                os.kill(d.pid, signal.SIGCONT)
            d.stop(signal.SIGKILL)
        self.api.stop()


class Load:
    """Asks the first frontend, and another when that one does not answer, as a balancer would."""

    def __init__(self, fleet, want, threads=3):
        self.fleet, self.want, self.ended, self.wrong, self.n = fleet, want, False, [], 0
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(threads)]
        for t in self.threads:
            t.start()

    def ask(self, path):
        for front in list(self.fleet.frontends) * 2:
            try:
                return front.get(path, GZIP, timeout=30)
            except (OSError, http.client.HTTPException) as e:
                last = e
        raise last

    def run(self, i):
        paths = list(self.want)
        while not self.ended:
            path = paths[(self.n + 5 * i) % len(paths)]
            self.n += 1
            try:
                r = self.ask(path + '&again=%d' % self.n)
                if r.status != 200 or text_of(r) != self.want[path]:
                    self.wrong.append((path, r))
            except (OSError, http.client.HTTPException) as e:
                self.wrong.append((path, e))

    def went_on(self, n=20):
        """So many more requests were answered, all of them well."""
        goal = self.n + n
        wait_for(lambda: self.n >= goal or self.wrong, 30)
        assert not self.wrong, self.wrong[:3]

    def end(self):
        self.ended = True
        for t in self.threads:
            t.join(60)
            assert not t.is_alive()


def test_no_request_is_lost_while_shards_come_go_die_and_hang(tmp_path):
    root = tmp_path / 'root'
    for i in range(RUNS):
        daemon.generate(root, 'run%d' % i, '--hosts', str(HOSTS), '--steps', '4', '--seed', str(i))
    q = daemon.query
    want = {}
    for i in range(RUNS):
        for path in (['/api/v1/window?' + q(run='run%d' % i, host='host-%d' % h, px=600, wait='all') for h in range(HOSTS)] +
                     ['/api/v1/report?' + q(run='run%d' % i, tool=t) for t in ('overview_page', 'hlo_stats')]):
            want[path] = None
    alone = daemon.Daemon('--logdir', root)
    for path in want:
        want[path] = text_of(alone.get(path, GZIP))
    alone.stop()
    fleet = Fleet(root, tmp_path)
    load = Load(fleet, want)
    try:
        load.went_on()
        for i in (1, 2, 3):
            fleet.add(i)
        fleet.settled()
        load.went_on()
        fleet.shards[2].stop(signal.SIGKILL)  # and is in the list for a while
        load.went_on()
        fleet.shards.pop(2)
        fleet.add(2)  # again, with its name
        fleet.settled()
        os.kill(fleet.shards[1].pid, signal.SIGSTOP)
        load.went_on(40)
        os.kill(fleet.shards[1].pid, signal.SIGCONT)
        old = fleet.frontends[0]
        old_retries = old.api('status').json()['retries']
        fleet.frontends[0] = fleet.front()
        assert old.stop() == 0
        load.went_on()
        for i in (3, 2, 0):
            fleet.remove(i)
            load.went_on()
        load.end()
        assert not load.wrong, load.wrong[:3]
        assert sum(f.api('status').json()['retries'] for f in fleet.frontends) + old_retries > 0
        # What was held for requests is given back: no more files than members, clients and the watch need.
        for d in fleet.frontends + list(fleet.shards.values()):
            wait_for(lambda d=d: len(os.listdir('/proc/%d/fd' % d.pid)) < 120)
            assert d.status_kb('VmRSS') < 400 << 10
            assert d.stop() == 0
    finally:
        load.end()
        fleet.stop()
