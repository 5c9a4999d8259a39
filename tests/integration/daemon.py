"""xprofd as a process, and a small HTTP client that sees headers, status and bytes as they are."""
import http.client
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
XPROFD = os.environ.get('XPROFD') or os.path.join(ROOT, 'build', 'release', 'xprofd')
BUILD = os.path.dirname(XPROFD)
COMPAT = '/data/plugin/profile'
START_S = 20


def generate(root, run, *options):
    subprocess.run([os.path.join(BUILD, 'gen'), '--out', str(root), '--run', run, *options], check=True,
                   stdout=subprocess.DEVNULL, timeout=120)


def run_dir(root, run):
    return os.path.join(str(root), 'plugins', 'profile', run)


def profile(root, run, host='host-0'):
    return os.path.join(run_dir(root, run), host + '.xplane.pb')


def query(**kw):
    """Values may be bytes; a name that is a Python word may end in '_'."""
    return '&'.join('%s=%s' % (k.rstrip('_'), urllib.parse.quote(v if isinstance(v, bytes) else str(v), safe=''))
                    for k, v in kw.items())


class Reply:
    def __init__(self, answer, body):
        self.status = answer.status
        self.headers = {k.lower(): v for k, v in answer.getheaders()}
        self.body = body

    @property
    def type(self):
        return self.headers.get('content-type', '')

    def json(self):
        return json.loads(self.body)

    def text(self):
        return self.body.decode('utf8')

    def __repr__(self):
        return '<%d %s %r>' % (self.status, self.type, self.body[:300])


class Daemon:
    """Waits for the line that says where it listens; keeps all lines."""

    def __init__(self, *flags, port=0, env=None, preexec=None, program=None):
        self.lines, self.seen = [], queue.Queue()
        self.scheme = 'https' if '--tls-cert' in flags else 'http'
        # Tests count loads and wait for states: nothing is looked at by and by unless a test is about that.
        env = dict(os.environ if env is None else env)
        env.setdefault('XPROFD_FIGURES_LIMIT', '0')
        self.proc = subprocess.Popen([program or XPROFD, *map(str, flags), '--port', str(port)], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, preexec_fn=preexec)
        self.pid = self.proc.pid
        threading.Thread(target=self.read, daemon=True).start()
        self.port = self.wait_port()

    def read(self):
        for line in self.proc.stdout:
            self.lines.append(line.decode('utf8', 'replace'))
            self.seen.put(self.lines[-1])
        self.seen.put(None)

    def wait_port(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            try:
                line = self.seen.get(timeout=0.5)
            except queue.Empty:
                continue
            if line is None:
                break
            m = re.search(r'listening on (https?)://([^/ ]+):(\d+)/', line)
            if m:
                assert m.group(1) == self.scheme
                return int(m.group(3))
        self.stop()
        raise AssertionError('xprofd did not listen: ' + ''.join(self.lines))

    def request(self, method, path, headers=None, body=None, timeout=60):
        c = http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)
        try:
            c.request(method, path, body=body, headers=headers or {})
            answer = c.getresponse()
            return Reply(answer, answer.read())
        finally:
            c.close()

    def get(self, path, headers=None, **kw):
        return self.request('GET', path, headers, **kw)

    def api(self, what, headers=None, **kw):
        return self.get('/api/v1/' + what + ('?' + query(**kw) if kw else ''), headers)

    def compat(self, what, **kw):
        return self.get(COMPAT + '/' + what + ('?' + query(**kw) if kw else ''))

    def trace(self, run, **kw):
        return self.compat('data', run=run, tag='trace_viewer@', **kw)

    def alive(self):
        return self.proc.poll() is None

    def status_kb(self, field):
        with open('/proc/%d/status' % self.pid) as f:
            for line in f:
                if line.startswith(field + ':'):
                    return int(line.split()[1])
        raise AssertionError(field)

    def loaded(self, run, host='host-0', limit=60):
        """Waits until the whole profile is there; the final answer to tracks."""
        end = time.monotonic() + limit
        while True:
            r = self.api('tracks', run=run, host=host)
            if r.status != 200 or not r.json()['loading']:
                return r
            assert time.monotonic() < end, 'still loading after %d s: %r' % (limit, r)
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, sig=signal.SIGTERM):
        if self.alive():
            self.proc.send_signal(sig)
            try:
                self.proc.wait(10)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
        return self.proc.returncode


def run_to_end(*flags, timeout=10):
    """For flags that end at once. -> (exit code, stdout, stderr)"""
    done = subprocess.run([XPROFD, *map(str, flags)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout, check=False)
    return done.returncode, done.stdout.decode('utf8', 'replace'), done.stderr.decode('utf8', 'replace')


def sentence(reply, status, code, *words):
    """The answer is a problem of ours: this status and code, and a sentence for people with these words in it."""
    assert reply.status == status, reply
    assert reply.type.startswith('application/problem+json'), reply
    problem = reply.json()
    assert problem['status'] == status and problem['code'] == code, problem
    detail = problem['detail']
    assert len(detail) > 10 and ' ' in detail, problem
    for w in words:
        assert w.lower() in detail.lower(), problem
    return problem
