"""Frontends, shards and users as processes: started, watched, counted. daemon's XPROFD has to be set before this is read."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request

from . import proc

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import daemon  # noqa: E402
from test_k8s import TOKEN, Api, certificate, endpoint_slice  # noqa: E402

ARGS = argparse.Namespace()  # the program's, which sets them

COUNTERS = ['part_hits_total', 'part_loads_total', 'part_evictions_total', 'part_refused_total', 'answers_known_total',
            'hosts_mapped_total', 'hosts_gathered_total', 'hosts_regained_total', 'asks_total', 'ask_retries_total',
            'asks_failed_total', 'asks_second_total', 'asks_second_won_total', 'hot_copies_total', 'hot_asks_total']


def made(data, name, runs, hosts, size):
    """A log directory with so many runs; made where it is missing."""
    root = os.path.join(data, '%s-%d-%d-%s' % (name, runs, hosts, size))
    if not os.path.exists(root):
        for i in range(runs):
            daemon.generate(root + '.part', 'run%03d' % i, '--hosts', str(hosts), '--size', size, '--seed', str(i + 1))
        os.rename(root + '.part', root)
    return root


class Process(daemon.Daemon):
    """Its admin port, what it counted, and its memory over time."""

    def __init__(self, name, *flags, **kw):
        super().__init__(*flags, '--admin-port', '0', '--log-level', 'warn', **kw)
        self.name, self.counted = name, {}
        self.host = flags[flags.index('--host') + 1] if '--host' in flags else '127.0.0.1'
        line = [x for x in self.lines if 'health and metrics' in x]
        self.admin_port = int(re.search(r'port (\d+)', line[0]).group(1))

    def rss_mb(self):
        """NaN: it is gone."""
        try:
            return self.status_kb('VmRSS') / 1024
        except (OSError, AssertionError):
            return float('nan')

    def count(self):
        """What it counted; of one that is gone, what it had at last."""
        try:
            with urllib.request.urlopen('http://%s:%d/metrics' % (self.host, self.admin_port), timeout=5) as r:
                text = r.read().decode()
            self.counted = {c: int(m.group(1)) for c in COUNTERS for m in [re.search(r'^xprofd_%s (\d+)$' % c, text, re.M)] if m}
        except OSError:
            pass
        return self.counted


class Fleet:
    """A frontend and n shards; members come from a fake API server, so that they may change."""

    def __init__(self, folder, root, n, budget, env=None):
        self.folder, self.root, self.budget, self.env = folder, root, budget, dict(env or os.environ)
        self.all, self.shards, self.port = [], {}, 0
        cert, key = certificate(folder, 'server')
        shutil.move(cert, os.path.join(folder, 'ca.crt'))
        for name, text in (('token', TOKEN), ('namespace', 'perf')):
            with open(os.path.join(folder, name), 'w', encoding='utf8') as f:
                f.write(text)
        self.api = Api(os.path.join(folder, 'ca.crt'), key)
        self.frontend = None
        for i in range(n):
            self.add(i)
        self.frontend = self.front(0)

    def front(self, port):
        env = dict(self.env, KUBERNETES_SERVICE_HOST='127.0.0.1', KUBERNETES_SERVICE_PORT=str(self.api.port),
                   XPROFD_SERVICEACCOUNT=self.folder)
        d = Process('frontend', 'frontend', '--logdir', self.root, '--shards', 'k8s:shards:%d' % self.port, env=env, port=port)
        self.all.append(d)
        self.frontend = d
        self.settled()
        return d

    def settled(self):
        end = time.monotonic() + 30
        while self.frontend.api('status').json()['shards'] != len(self.shards):
            if time.monotonic() > end:
                raise RuntimeError('the frontend does not see its shards')
            time.sleep(0.02)

    def tell(self):
        self.api.change(endpoint_slice('shards-a', *['127.0.0.%d' % (i + 1) for i in sorted(self.shards)]))

    def add(self, i):
        d = Process('shard %d' % i, 'shard', '--logdir', self.root, '--host', '127.0.0.%d' % (i + 1), '--identity', 'pod-%d' % i,
                    '--threads', '2', '--memory-budget', self.budget, env=self.env, port=self.port)
        self.port = self.port or d.port
        self.shards[i] = d
        self.all.append(d)
        self.tell()

    def remove(self, i):
        d = self.shards.pop(i)
        self.tell()
        self.settled()
        d.count()
        d.stop()

    def kill(self, i):
        self.shards[i].count()
        self.shards.pop(i).stop(signal.SIGKILL)

    def stop(self):
        for d in self.all:
            if d.alive():
                os.kill(d.pid, signal.SIGCONT)
                d.stop()
        self.api.stop()


def plan(fleet, folder, runs, hosts=('host-0',)):
    path = os.path.join(folder, 'plan')
    with open(path, 'w', encoding='utf8') as f:
        for run in runs:
            t = fleet.frontend.api('tracks', run=run, host=hosts[0], wait='all').json()
            for host in hosts:
                f.write('%s\t%s\t%d\t%d\n' % (run, host, t['begin_ps'], t['end_ps']))
    return path


class Pair:
    """One shard and a frontend that is told where it is; what they say to each other is signed."""

    def __init__(self, folder, root, budget='512MB', shard=(), preexec=None, env=None):
        key = os.path.join(folder, 'rpc-key')
        with open(key, 'w', encoding='utf8') as f:
            f.write('a-key-for-a-load-test-0123456789\n')
        self.common = ('--logdir', root, '--rpc-key', key)
        self.env = env
        self.shard = Process('shard', 'shard', *self.common, '--threads', '2', *(('--memory-budget', budget) if budget else ()),
                             *shard, preexec=preexec, env=env)
        self.all = [self.shard]
        self.frontend = self.front()

    def front(self, *flags, name='frontend'):
        """Another frontend of the same shard."""
        d = Process(name, 'frontend', *self.common, '--shards', 'static:127.0.0.1:%d' % self.shard.port, *flags, env=self.env)
        self.all.append(d)
        return d

    def stop(self):
        for d in self.all:
            d.stop()


def window_path(run='run000', host='host-0'):
    return '/api/v1/window?run=%s&host=%s&px=1500&wait=all' % (run, host)


def span(server, run='run000', host='host-0'):
    t = server.api('tracks', run=run, host=host, wait='all').json()
    return t['begin_ps'], t['end_ps']


def hammer(server, lo_hi, clients, watched=(), **flags):
    """As fast as so many clients can: hammer's figures, and CPU milliseconds a request of each process that is watched."""
    cmd = [os.path.join(ARGS.build, 'hammer'), '--port', str(server.port), '--path', window_path() + '&t0={t0}&t1={t1}', '--lo',
           str(lo_hi[0]), '--hi', str(lo_hi[1]), '--zoom', '1-10', '--clients', str(clients)]
    for k, v in flags.items():
        cmd += ['--' + k, str(v)]
    before = [proc.threads_cpu(d.pid) for d in watched]
    done = subprocess.run(cmd, stdout=subprocess.PIPE, timeout=120, check=True)
    out = json.loads(done.stdout)
    out['cpu_ms'] = [1000 * (proc.threads_cpu(d.pid) - b) / max(1, out['requests']) for d, b in zip(watched, before)]
    return out


class Run:
    """One scenario: the users beside what happens meanwhile."""

    def __init__(self, fleet, title, plan_path, users, mix='', events=(), rate=0, flags=(), port=0, **kw):
        self.fleet, self.title, self.marks = fleet, title, []
        self.hits, self.known, self.last = [], [], None
        self.rss = {}  # of each process: (name, [(second, MB)])
        n = ARGS.users or (users // 10 if ARGS.small else users)
        cmd = [os.path.join(ARGS.build, 'users'), '--port', str(port or fleet.frontend.port), '--plan', plan_path, '--users', str(n),
               '--rate', str(rate or ARGS.rate), '--seconds', str(ARGS.seconds)] + (['--mix', mix] if mix else [])
        cmd += list(flags) + (['--http2'] if ARGS.http2 and '--http2' not in flags else [])
        for k, v in kw.items():
            cmd += ['--' + k, str(v)]
        self.protocol = 'HTTP/%s%s' % ('2' if '--http2' in cmd else '1.1', ' over TLS' if '--tls' in cmd else '')
        before = self.counted()
        self.cpu0, self.load = self.cpu(), os.getloadavg()[0]
        began = time.monotonic()
        proc = subprocess.Popen(cmd, stdout=subprocess.PIPE)
        ended = threading.Event()
        watcher = threading.Thread(target=self.watch, args=(began, ended))
        watcher.start()
        try:
            for at, what, do in events:
                time.sleep(max(0, began + at * ARGS.seconds - time.monotonic()))
                self.marks.append((time.monotonic() - began, what))
                do()
            out = proc.communicate(timeout=ARGS.seconds + 120)[0]
        finally:
            ended.set()
            watcher.join()
            if proc.poll() is None:
                proc.kill()
        self.result = json.loads(out)
        after = self.counted()
        self.counts = {k: after.get(k, 0) - before.get(k, 0) for k in COUNTERS}
        self.cpu1 = self.cpu()

    def counted(self):
        total = {}
        for d in list(self.fleet.all):
            for k, v in d.count().items():
                total[k] = total.get(k, 0) + v
        return total

    def cpu(self):
        """CPU seconds so far of the frontends and of the shards that live."""
        sums = {'frontend': 0.0, 'shards': 0.0}
        for d in self.fleet.all:
            try:
                with open('/proc/%d/stat' % d.pid, encoding='utf8') as f:
                    v = f.read().rsplit(')', 1)[1].split()
                sums['frontend' if d.name.startswith('frontend') else 'shards'] += (int(v[11]) + int(v[12])) / os.sysconf('SC_CLK_TCK')
            except OSError:
                pass
        return sums

    def watch(self, began, ended):
        looked = 0
        while not ended.wait(0.5):
            for d in list(self.fleet.all):
                mb = d.rss_mb()
                if mb == mb:
                    self.rss.setdefault(d, (d.name, []))[1].append((time.monotonic() - began, mb))
            looked += 1
            if looked % 2 == 0:
                self.look(time.monotonic() - began)

    def look(self, at):
        """What the shards answered from memory since the last look: of profiles, and of answers, a share."""
        now = self.counted()
        if self.last:
            d = {k: max(0, now.get(k, 0) - self.last.get(k, 0)) for k in COUNTERS}
            looked = d['part_hits_total'] + d['part_loads_total']
            if looked:
                self.hits.append((at, 100 * d['part_hits_total'] / looked))
            if looked + d['answers_known_total']:
                self.known.append((at, 100 * d['answers_known_total'] / (looked + d['answers_known_total'])))
        self.last = now

    def what(self):
        r = self.result
        return '%d users, %s, %g actions/s for %g s; load of the machine before: %.1f' % (
            r['users'], self.protocol, r['rate'], r['run_s'], self.load)

    def row(self, name='all'):
        return self.result['ms'][name]

    def text(self):
        r, c, lines = self.result, self.counts, []
        lines.append('%s (%s)' % (self.title, self.what()))
        lines.append('%-6s %8s %7s %9s %9s %9s %9s %9s  ms' % ('', 'n', 'errors', 'p50', 'p95', 'p99', 'p99.9', 'max'))
        for name, m in r['ms'].items():
            if m['n'] or m['errors']:
                lines.append('%-6s %8d %7d %9.1f %9.1f %9.1f %9.1f %9.1f' %
                             (name, m['n'], m['errors'], m['p50'], m['p95'], m['p99'], m['p999'], m['max']))
        failed = ['%d in second %d' % (x[1], i) for i, x in enumerate(r['seconds']) if x[1]]
        if failed:
            lines.append('errors: ' + ', '.join(failed) + ''.join('; %s at %.1f s' % (what, at) for at, what in self.marks))
        looked = c['part_hits_total'] + c['part_loads_total']
        lines.append('refused (503) %d, sent again by the client %d, wrong answers of links %d; CPU frontend %.1f s, shards %.1f s' %
                     (r['busy'], r['retries'], r['wrong'], self.cpu1['frontend'] - self.cpu0['frontend'],
                      self.cpu1['shards'] - self.cpu0['shards']))
        lines.append('cache: %.1f %% hits, %d loads, %d evictions, %d refused, %d answers known' %
                     (100 * c['part_hits_total'] / looked if looked else 0, c['part_loads_total'], c['part_evictions_total'],
                      c['part_refused_total'], c['answers_known_total']))
        lines.append('asks %d, again elsewhere %d, second %d (won %d), failed %d; hosts mapped %d, gathered %d, regained %d; '
                     'copies %d (used %d times)' %
                     tuple(c[k] for k in ('asks_total', 'ask_retries_total', 'asks_second_total', 'asks_second_won_total',
                                          'asks_failed_total', 'hosts_mapped_total', 'hosts_gathered_total',
                                          'hosts_regained_total', 'hot_copies_total', 'hot_asks_total')))
        lines.append('RSS at most: ' + ', '.join('%s %.0f MB' % (name, max(v for _, v in mb)) for name, mb in self.rss.values()))
        return '\n'.join(lines)
