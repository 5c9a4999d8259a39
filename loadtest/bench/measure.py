"""The measurements. Each starts its own servers, returns plain numbers, and bounds every loop."""
import json
import os
import re
import statistics
import subprocess
import time
import urllib.parse

from . import data, proc, web

COMPAT = '/data/plugin/profile'
FIRST = {'xprofd': '/api/v1/runs', 'xprof': COMPAT + '/runs', 'xprof-rs': COMPAT + '/runs'}
PX = 1500
LOAD_LIMIT_S = 600


class Failed(RuntimeError):
    pass


def trace_path(run, host, **more):
    return COMPAT + '/data?' + web.query(run=run, tag='trace_viewer@', hosts=host, resolution=8000, **more)


def window_path(run, host):
    return '/api/v1/window?' + web.query(run=run, host=host, px=PX)


def need(server, reply):
    if reply.status != 200:
        raise Failed('%s answered %s %s %r' % (server.kind.name, reply.status, reply.error, reply.body[:200]))
    return reply


def start(kind, logdir, extra=(), **kw):
    return proc.Server(kind, logdir, FIRST[kind.name], extra, **kw)


class Bench:
    def __init__(self, args):
        self.a = args

    # --- start ---

    def start_up(self, kind, repeat):
        """Seconds from the spawn to the first answer; memory of the idle process."""
        times, idle = [], 0
        with data.Copy(self.a.data, self.a.smallest) as logdir:
            for _ in range(repeat):
                with start(kind, logdir) as s:
                    time.sleep(0.3)
                    times.append(s.start_s)
                    idle = s.usage().rss
        return {'start_ms': min(times) * 1e3, 'idle_rss': idle}

    def first_page(self, kind):
        """Bytes on the wire of the page and of what it loads at once."""
        with data.Copy(self.a.data, self.a.smallest) as logdir, start(kind, logdir) as s:
            path = '/'
            for _ in range(4):
                r = web.get(s.port, path)
                if r.status not in (301, 302, 303, 307, 308):
                    break
                path = urllib.parse.urljoin(path, r.headers.get('location', '/'))
            need(s, r)
            total = r.wire
            page = r.decoded().decode('utf8', 'replace')
            for link in set(re.findall(r'(?:src|href)="([^"#?]+\.(?:js|css|svg|woff2))"', page)):
                total += need(s, web.get(s.port, urllib.parse.urljoin(path, link))).wire
        return {'first_page_bytes': total}

    # --- cold first view ---

    def cold_trace(self, kind, run, repeat):
        host = data.hosts(self.a.data, run)[0]
        best = {}
        for _ in range(repeat):
            data.warm(self.a.data, run)
            with data.Copy(self.a.data, run) as logdir, start(kind, logdir) as s:
                before = s.usage()
                r = web.get(s.port, trace_path(run, host), timeout=self.a.timeout)
                after = s.usage()
                need(s, r)
                got = {'wall_s': r.wall, 'cpu_s': after.cpu - before.cpu, 'peak': after.peak,
                       'above_idle': after.peak - before.rss, 'wire': r.wire, 'decoded': r.decoded_size()}
            for k, v in got.items():
                best[k] = min(best.get(k, v), v)
            if got['wall_s'] > 30:
                break
        return best

    def load_window(self, s, run, host):
        """Asks for the whole profile until it is there. -> (first reply, seconds to it, to all, window)."""
        path, began = window_path(run, host), time.perf_counter()
        first = need(s, web.get(s.port, path))
        first_s = time.perf_counter() - began
        w = web.Window(first.decoded())
        while w.loading:
            if time.perf_counter() - began > LOAD_LIMIT_S:
                raise Failed('still loading after %d s' % LOAD_LIMIT_S)
            time.sleep(0.002)
            w = web.Window(need(s, web.get(s.port, path)).decoded())
        return first, first_s, time.perf_counter() - began, w

    def cold_window(self, kind, run, repeat, cores=None, extra=()):
        host = data.hosts(self.a.data, run)[0]
        got = []
        for _ in range(repeat):
            data.warm(self.a.data, run)
            with data.Copy(self.a.data, run) as logdir, start(kind, logdir, extra, cores=cores) as s:
                before = s.usage()
                first, first_s, whole_s, w = self.load_window(s, run, host)
                after = s.usage()
                got.append({'first_s': first_s, 'whole_s': whole_s, 'cpu_s': after.cpu - before.cpu,
                            'peak': after.peak, 'above_idle': after.peak - before.rss, 'wire': first.wire,
                            'rss': after.rss, 'events': w.events})
        out = {k: min(g[k] for g in got) for k in got[0]}
        out['whole_median_s'] = statistics.median(g['whole_s'] for g in got)
        return out

    # --- windows ---

    def hammer(self, s, path, span, clients, seconds, count=None, known=0, zoom='1-10', seed=1):
        cmd = [self.a.hammer, '--port', str(s.port), '--path', path, '--lo', str(span[0]), '--hi', str(span[1]),
               '--clients', str(clients), '--seconds', str(seconds), '--zoom', zoom, '--seed', str(seed)]
        if count:
            cmd += ['--count', str(count)]
        if known:
            cmd += ['--known', str(known)]
        before = s.usage()
        done = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds + 120, check=False)
        after = s.usage()
        if not done.stdout:
            raise Failed('hammer: ' + done.stderr.decode('utf8', 'replace')[-300:])
        out = json.loads(done.stdout)
        n = max(1, out['requests'])
        out.update(cpu_ms=(after.cpu - before.cpu) * 1e3 / n, answer=out['bytes'] / n, rss_before=before.rss,
                   rss_after=after.rss, peak=after.peak)
        return out

    def windows(self, kind, run):
        """Our window API: one client, then 64. Every window is new."""
        host = data.hosts(self.a.data, run)[0]
        with data.Copy(self.a.data, run) as logdir, start(kind, logdir) as s:
            _, _, _, w = self.load_window(s, run, host)
            path = window_path(run, host) + '&t0={t0}&t1={t1}'
            span = (w.t0, max(w.t1, w.t0 + 1))
            one = self.hammer(s, path, span, 1, self.a.seconds, count=self.a.series)
            many = self.hammer(s, path, span, 64, self.a.seconds, seed=2)
            again = self.hammer(s, path, span, 64, self.a.seconds, seed=3)
        return {'one': one, 'many': many, 'rss_flat': (many['rss_after'], again['rss_after'])}

    def traces(self, kind, run):
        """trace_viewer@ windows: new ones, then 16 known ones."""
        host = data.hosts(self.a.data, run)[0]
        with data.Copy(self.a.data, run) as logdir, start(kind, logdir) as s:
            r = need(s, web.get(s.port, trace_path(run, host), timeout=self.a.timeout))
            m = re.search(rb'"fullTimespan":\s*\[([-0-9.eE+]+),\s*([-0-9.eE+]+)\]', r.decoded())
            if not m:
                raise Failed('no fullTimespan in the answer')
            span = tuple(int(float(x) * 1e9) for x in m.groups())
            path = trace_path(run, host) + '&start_time_ms={ms0}&end_time_ms={ms1}'
            new = self.hammer(s, path, span, 1, self.a.seconds, count=self.a.series, zoom='4-7')
            self.hammer(s, path, span, 1, self.a.seconds, count=64, known=16, zoom='4-7')
            known = self.hammer(s, path, span, 1, self.a.seconds, count=self.a.series, known=16, zoom='4-7')
            many = self.hammer(s, path, span, 64, self.a.seconds, zoom='4-7', seed=5)
        return {'new': new, 'known': known, 'many': many}

    # --- memory ---

    def growth(self, kind, run, runs):
        """RSS after each of several runs, opened one after another by one process."""
        host, out = data.hosts(self.a.data, run)[0], []
        extra = ['--memory-budget', '128MB'] if kind.ours else []
        with data.Copy(self.a.data, run, runs) as logdir, start(kind, logdir, extra) as s:
            idle = s.usage().rss
            for i in range(runs):
                name = '%s-%d' % (run, i)
                if kind.ours:
                    self.load_window(s, name, host)
                need(s, web.get(s.port, trace_path(name, host), timeout=self.a.timeout))
                out.append(s.usage().rss)
            peak = s.usage().peak
        return {'idle': idle, 'rss': out, 'peak': peak}

    def limited(self, kind, run, limit, budget):
        """Opens and zooms a large profile under a memory limit; says which limit there was."""
        host, group = data.hosts(self.a.data, run)[0], proc.Cgroup(limit)
        try:
            with data.Copy(self.a.data, run) as logdir, \
                    start(kind, logdir, ['--memory-budget', str(budget)], cgroup=group) as s:
                _, _, whole, w = self.load_window(s, run, host)
                zoom = self.hammer(s, window_path(run, host) + '&t0={t0}&t1={t1}', (w.t0, w.t1), 1, self.a.seconds,
                                   count=self.a.series)
                return {'by': 'a memory cgroup' if group.path else 'the budget; no writable memory cgroup',
                        'peak': s.usage().peak, 'whole_s': whole, 'p99_ms': zoom['p99_ms'], 'alive': s.alive()}
        finally:
            group.close()

    # --- the decoder alone ---

    def decode(self, program, run):
        path = os.path.join(data.run_dir(self.a.data, run), data.hosts(self.a.data, run)[0] + '.xplane.pb')
        done = subprocess.run([program, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
        if done.returncode:
            raise Failed('decode_bench: ' + done.stderr.decode('utf8', 'replace')[-300:])
        return done.stdout.decode('utf8', 'replace').replace(path, run).strip()
