"""A fleet under load while it grows from one shard to four and shrinks again, shards are slow, killed and stopped, the store fails in
its ways, and a frontend is started anew: no request is lost that a retry could have served, and no answer is wrong. Members come from
the fake API server, profiles from the fake store."""
import gzip
import http.client
import os
import re
import signal
import threading
import time

import daemon
import fake_store
from test_admin import Admin
from test_bucket import CLEAN
from test_k8s import TOKEN, Api, certificate, endpoint_slice, wait_for

RUNS, HOSTS = 3, 4
BUCKET = 'gs://pool'
MEDIA, LIST = 'alt=media', 'delimiter='
GZIP = {'accept-encoding': 'gzip'}


def text_of(reply):
    return gzip.decompress(reply.body) if reply.headers.get('content-encoding') == 'gzip' else reply.body


class Fleet:
    """Shards at 127.0.0.1, .2, ... and the same port, as a service's pods are."""

    def __init__(self, folder, store):
        self.folder, self.shards = str(folder), {}
        self.env = dict(CLEAN, STORAGE_EMULATOR_HOST=store.url)
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
        env = dict(self.env, KUBERNETES_SERVICE_HOST='127.0.0.1', KUBERNETES_SERVICE_PORT=str(self.api.port),
                   XPROFD_SERVICEACCOUNT=self.folder)
        d = daemon.Daemon('frontend', '--logdir', BUCKET, '--shards', 'k8s:shards:%d' % self.port, '--admin-port', '0', env=env)
        d.admin = Admin(d)
        wait_for(lambda: d.api('status').json()['shards'] > 0)
        return d

    def tell(self):  # who is ready now
        self.api.change(endpoint_slice('shards-a', *['127.0.0.%d' % (i + 1) for i in sorted(self.shards)]))

    def settled(self):
        wait_for(lambda: all(f.api('status').json()['shards'] == len(self.shards) for f in self.frontends))

    def add(self, i):
        self.shards[i] = daemon.Daemon('shard', '--logdir', BUCKET, '--host', '127.0.0.%d' % (i + 1), '--identity', 'pod-%d' % i,
                                       '--threads', '2', '--memory-budget', '128MB', port=self.port, env=self.env)
        self.tell()

    def remove(self, i):
        """As a pod ends: not ready first, then told to."""
        d = self.shards.pop(i)
        self.tell()
        self.settled()
        assert d.stop() == 0

    def metric(self, name):
        """Of all frontends that there are."""
        return sum(int(re.search(r'^xprofd_%s (\d+)$' % name, f.admin.get('/metrics').text(), re.M).group(1)) for f in self.frontends)

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


class Slow:
    """Processes that get on by fits and starts: stopped for most of the time."""

    def __init__(self, daemons):
        self.daemons, self.ended = daemons, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ended:
            for sig, seconds in ((signal.SIGSTOP, 0.03), (signal.SIGCONT, 0.015)):
                for d in self.daemons:
                    os.kill(d.pid, sig)
                time.sleep(seconds)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()


def what_to_ask(folder):
    """Path -> text, as one process says it that reads the same files from the disk."""
    q, want = daemon.query, {}
    for i in range(RUNS):
        for path in (['/api/v1/window?' + q(run='run%d' % i, host='host-%d' % h, px=600, wait='all') for h in range(HOSTS)] +
                     ['/api/v1/report?' + q(run='run%d' % i, tool=t) for t in ('overview_page', 'hlo_stats')] +
                     [daemon.COMPAT + '/data?' + q(run='run%d' % i, tag='trace_viewer@', resolution=500)]):
            want[path] = None
    alone = daemon.Daemon('--logdir', folder)
    for path in want:
        want[path] = text_of(alone.get(path, GZIP))
    alone.stop()
    return want


def grow_from_a_faulty_store(fleet, load, store):
    """Who comes has everything to load, and the store does all that it may do wrong."""
    store.faults.set({'latency_ms': 5, 'rules': [
        {'match': LIST, 'status': 429, 'retry_after': '0', 'times': 2}, {'match': LIST, 'drop': True, 'times': 2},
        {'match': MEDIA, 'status': 503, 'times': 3}, {'match': MEDIA, 'reset_after': 2000, 'times': 3},
        {'match': MEDIA, 'short_after': 3000, 'times': 3}, {'match': MEDIA, 'drop': True, 'times': 3},
        {'match': MEDIA, 'trickle': 400000, 'times': 10}]})
    for i in (1, 2, 3):
        fleet.add(i)
    fleet.settled()
    wait_for(lambda: not any(r['times'] for r in store.faults.rules if MEDIA in r['match']) or load.wrong, 30)
    load.went_on()


def slow_shards_and_a_hot_profile(fleet, want):
    """What many look at at once gets copies, which say the same."""
    hot = next(iter(want))
    with Slow(list(fleet.shards.values())):
        crowd = Load(fleet, {hot: want[hot]}, threads=24)
        try:
            wait_for(lambda: fleet.metric('hot_copies_total') and fleet.metric('hot_asks_total') > 5 or crowd.wrong, 30)
        finally:
            crowd.end()
    assert not crowd.wrong, crowd.wrong[:3]


def nothing_that_is_loaded_needs_the_store(fleet, load, store, want):
    for front in fleet.frontends:
        for path in want:
            assert front.get(path, GZIP).status == 200
    store.faults.set({'rules': [{'match': '.', 'status': 503, 'times': 10 ** 9}]})
    load.went_on(2 * len(want))
    store.faults.clear()


def test_no_request_is_lost_while_shards_come_go_die_and_hang(tmp_path):
    for i in range(RUNS):
        daemon.generate(tmp_path / 'buckets' / 'pool', 'run%d' % i, '--hosts', str(HOSTS), '--steps', '4', '--seed', str(i))
    want = what_to_ask(tmp_path / 'buckets' / 'pool')
    store = fake_store.Fake(str(tmp_path / 'buckets')).start()
    fleet = Fleet(tmp_path, store)
    load = Load(fleet, want)
    try:
        load.went_on()
        grow_from_a_faulty_store(fleet, load, store)
        slow_shards_and_a_hot_profile(fleet, want)
        nothing_that_is_loaded_needs_the_store(fleet, load, store, want)
        fleet.shards[2].stop(signal.SIGKILL)  # and is in the list for a while
        load.went_on()
        fleet.shards.pop(2)
        fleet.add(2)  # again, with its name
        fleet.settled()
        os.kill(fleet.shards[1].pid, signal.SIGSTOP)
        load.went_on(40)
        os.kill(fleet.shards[1].pid, signal.SIGCONT)
        retries = fleet.metric('ask_retries_total')
        old, fleet.frontends[0] = fleet.frontends[0], fleet.front()
        assert old.stop() == 0
        load.went_on()
        for i in (3, 2, 0):
            fleet.remove(i)
            load.went_on()
        load.end()
        assert not load.wrong, load.wrong[:3]
        assert retries > 0
        # What was held for requests is given back: no more files than members, clients and the watch need.
        for d in fleet.frontends + list(fleet.shards.values()):
            wait_for(lambda d=d: len(os.listdir('/proc/%d/fd' % d.pid)) < 120)
            assert d.status_kb('VmRSS') < 400 << 10
            assert d.stop() == 0
    finally:
        load.end()
        fleet.stop()
        store.shutdown()
        store.server_close()
