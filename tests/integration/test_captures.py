"""Captures: from a real JAX process, from targets that misbehave, into a directory and into a bucket; who may, and what is left."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import daemon
import fake_store

pytest.importorskip('jax', reason='jax is not installed: there is no workload to capture from')
grpc = pytest.importorskip('grpc', reason='grpcio is not installed: there are no targets that misbehave')
from fake_target import FakeTarget, RawTarget, fields, response, xspace  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = {'x-xprofd': '1'}
BUSY = (grpc.StatusCode.INTERNAL, 'Another profiling session active.')
BIG = 40_000_000


def until(what, limit=30):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(0.02)
    raise AssertionError('not within %d s' % limit)


def post(server, what='captures', headers=OURS, base='/api/v1/', **body):
    return server.request('POST', base + what, headers, json.dumps(body))


def end(server, capture, **kw):
    return server.request('DELETE', '/api/v1/captures?' + daemon.query(id=capture['id'], **kw), OURS)


def now(server, capture):
    return server.api('captures', id=capture['id']).json()


def over(server, capture):
    return until(lambda: (lambda c: c if c['phase'] == 'done' else None)(now(server, capture)))


def captured(server, *targets, what='captures', **wish):
    r = post(server, what, targets=list(targets), **wish)
    assert r.status == 202, r
    return over(server, r.json())


def of(capture, target):
    return next(t for t in capture['targets'] if t['target'] == target)


def files(root):
    return sorted(os.path.relpath(os.path.join(d, f), root) for d, _, names in os.walk(root) for f in names)


def profile(server, run, target):
    return os.path.join(server.root, 'plugins', 'profile', run, target + '.xplane.pb')


# --- targets ---

class Held:
    """Answers when it is told to end, or the other side leaves."""

    def __init__(self):
        self.ended, self.left = threading.Event(), threading.Event()

    def __call__(self, method, asked, context):
        if method == 'Terminate':
            self.ended.set()
        elif method == 'Profile' and asked[1][0] > 1000:  # not a window that tries out
            context.add_callback(self.left.set)
            until(lambda: self.ended.is_set() or self.left.is_set(), 60)
        return response(xspace(100))


def is_recording(fake):
    return any(asked[1][0] > 1000 for asked in fake.of('Profile'))


class Continuous:
    """One session; a snapshot brings what was recorded since the last."""

    def __init__(self):
        self.runs, self.new = False, False

    def __call__(self, method, asked, context):
        if method == 'StartContinuousProfiling':
            if self.runs:
                context.abort(grpc.StatusCode.ALREADY_EXISTS, 'A profiling session is already running.')
            self.runs = self.new = True
        elif method == 'Profile':
            context.abort(*BUSY)
        elif method in ('GetSnapshot', 'StopContinuousProfiling'):
            if not self.runs:
                context.abort(grpc.StatusCode.NOT_FOUND, 'No continuous profiling session found.')
            had, self.new, self.runs = self.new, False, method == 'GetSnapshot'
            return response(xspace(10) if had else None, empty=not had) if self.runs else b''
        return b''


def writes(root, content):
    """As a process that writes the profile itself: below what stands for the root in its eyes."""
    def behave(method, asked, context):
        place = os.path.join(root, asked[6][0].decode())
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, asked[7][0].decode() + '.xplane.pb'), 'wb') as f:
            f.write(content)
        return b''
    return behave


def busy_once():
    tries = []

    def behave(method, asked, context):
        tries.append(1)
        if len(tries) == 1:
            context.abort(*BUSY)
        return response(xspace())
    return behave


def grows(per_ms, always):
    """A profile of so many bytes a ms of the window, of which it tells the number only when that is asked for by a probe."""
    def behave(method, asked, context):
        window = asked[1][0]
        return response(xspace(always + per_ms * window if window <= 450 else 0))
    return behave


def abort(*how):
    return lambda method, asked, context: context.abort(*how)


def message(payload):
    return b'\0' + len(payload).to_bytes(4, 'big') + payload


class Again(RawTarget):
    """Refuses the first attempt, but not without bytes of a profile."""

    def answer(self, peer, stream):
        self.data, self.status = (message(response(xspace(500))), b'6') if self.calls == 1 else (message(response(xspace(7))), b'0')
        super().answer(peer, stream)


@pytest.fixture(scope='module')
def workload():
    p = subprocess.Popen([sys.executable, os.path.join(HERE, 'jax_target.py')], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    line = p.stdout.readline().decode()
    p.port = int(re.match(r'READY port=(\d+)', line).group(1))
    yield p
    p.stdin.close()
    try:
        p.wait(10)
    except subprocess.TimeoutExpired:
        p.kill()


@pytest.fixture(scope='module')
def server(tmp_path_factory, workload):
    """A server of a directory, with all kinds of targets: server.fakes by name."""
    root = str(tmp_path_factory.mktemp('captures'))
    place = os.path.join(root, 'plugins', 'profile')
    hole = socket.create_server(('127.0.0.1', 0))
    refused = socket.create_server(('127.0.0.1', 0))
    port = refused.getsockname()[1]
    refused.close()
    fakes = {
        'good': FakeTarget(lambda *_: response(xspace(1000))),
        'big': FakeTarget(lambda *_: response(xspace(BIG))),
        'empty': FakeTarget(lambda *_: response(xspace(), empty=True)),
        'busy': FakeTarget(busy_once()),
        'old': FakeTarget(writes(place, xspace(50))),
        'zero': FakeTarget(writes(place, b'')),
        'liar': FakeTarget(lambda *_: b''),
        'wrong': FakeTarget(abort(grpc.StatusCode.PERMISSION_DENIED, 'no\nway \x1b[31m<b>')),
        'wordy': FakeTarget(abort(grpc.StatusCode.INTERNAL, 'x' + '\u00e9' * 150)),
        'again': Again(),
        'junk': FakeTarget(lambda *_: response(b'{"no": "profile"}')),
        'heavy': FakeTarget(grows(60_000, 1_000_000)),
        'held': FakeTarget(Held()),
        'kept': FakeTarget(Held()),
        'ring': FakeTarget(Continuous()),
        'dies': RawTarget(message(response(xspace(100_000)))[:60_000], status=None, close=True),
        'quiet': RawTarget(message(response(xspace())), status=None),
        'packed': RawTarget(b'\1' + message(response(xspace()))[1:]),
        'endless': RawTarget(b'\0\xff\xff\xff\xff' + b'x' * 1000),
        'cut': RawTarget(message(response(xspace(100)))[:50]),
        'odd': RawTarget(message(response(xspace())), status=b'99'),
        'web': RawTarget(b'<html>', status=None, more=[(b'content-type', b'text/html')]),
    }
    flags = ['--target=%s=127.0.0.1:%d' % (n, f.port) for n, f in fakes.items()]
    flags += ['--target=workload=127.0.0.1:%d' % workload.port, '--target=hole=127.0.0.1:%d' % hole.getsockname()[1],
              '--target=refused=127.0.0.1:%d' % port, '--target=nowhere=no-such-host.invalid:9999']
    d = daemon.Daemon('--logdir', root, '--admin-port', 0, *flags)
    d.root, d.fakes = root, fakes
    yield d
    assert d.stop() == 0
    for f in fakes.values():
        f.stop()
    hole.close()
    assert not [f for f in files(root) if not f.endswith('.xplane.pb') or '.probe' in f], 'something was left behind'


# --- a real workload ---

def test_a_capture_of_a_real_workload_is_a_run_that_opens(server):
    before = server.api('runs').json()['total']
    done = captured(server, 'workload', duration_ms=300, levels={'host': 3, 'device': 1, 'python': 0})
    assert done['outcome'] == 'SUCCEEDED', done
    mine = of(done, 'workload')
    assert (mine['outcome'], mine['grpc_status'], mine['attempts'], mine['message'], mine['hint']) == ('SUCCEEDED', 0, 1, '', '')
    assert os.path.getsize(profile(server, done['run'], 'workload')) == mine['bytes'] > 1000
    assert re.fullmatch(r'\d{4}(_\d\d){5}(_\d+)?', done['run'])
    runs = server.api('runs').json()
    assert runs['total'] == before + 1 and runs['runs'][0]['run'] == done['run']
    tracks = server.loaded(done['run'], 'workload').json()
    assert any(p['name'] == '/host:CPU' and p['events'] for p in tracks['planes'])
    rate = next(t for t in server.api('captures').json()['targets'] if t['name'] == 'workload')
    assert rate['bytes_per_s'] > 1000 and rate['busy'] is False and rate['address'].startswith('127.0.0.1:')


def test_an_early_end_keeps_what_a_workload_has_recorded(server):
    began = post(server, targets=['workload'], duration_ms=600_000, run='early').json()
    until(lambda: now(server, began)['phase'] == 'capturing')
    daemon.sentence(post(server, targets=['good', 'workload']), 409, 'conflict', 'workload', 'captured')
    assert next(t for t in server.api('captures').json()['targets'] if t['name'] == 'workload')['busy'] is True
    time.sleep(0.5)  # some steps
    assert end(server, began).status == 202
    done = over(server, began)
    assert (done['outcome'], done['note'], of(done, 'workload')['outcome']) == ('SUCCEEDED', 'ended early', 'SUCCEEDED')
    assert server.loaded('early', 'workload').json()['events'] > 0
    assert end(server, done).status == 202 and now(server, done) == done


def test_continuous_profiling_of_a_real_workload(server, workload):
    on = post(server, 'captures/continuous', targets=['workload', 'refused'], on=True).json()
    assert [(c['target'], c['state'], c['message']) for c in on['continuous']] == [('workload', 'running', None)]
    assert [(f['target'], f['outcome']) for f in on['failed']] == [('refused', 'UNREACHABLE')] and on['failed'][0]['hint']
    daemon.sentence(post(server, targets=['workload']), 409, 'conflict', 'continuously', 'snapshot')
    # On a CPU nothing is recorded: that is no success, whatever the workload says.
    first, second = (captured(server, 'workload', what='captures/snapshot') for _ in range(2))
    assert (first['kind'], first['outcome'], of(first, 'workload')['outcome']) == ('snapshot', 'FAILED', 'EMPTY')
    assert 'yet' in of(first, 'workload')['message'] and 'last snapshot' in of(second, 'workload')['message']
    assert post(server, 'captures/continuous', targets=['workload'], on=False).json() == {'continuous': [], 'failed': []}
    gone = captured(server, 'workload', what='captures/snapshot')
    assert of(gone, 'workload')['grpc_status'] == 5 and 'restarted' in of(gone, 'workload')['hint']
    # Somebody else's, which records the host: it can be seen, taken and stopped.
    with grpc.insecure_channel('127.0.0.1:%d' % workload.port) as channel:
        channel.unary_unary('/tensorflow.ProfilerService/StartContinuousProfiling')(bytes.fromhex('2206100218002801'), timeout=20)
    try:
        on = post(server, 'captures/continuous', targets=['workload'], on=True).json()
        assert [(c['state'], c['since_ms']) for c in on['continuous']] == [('unknown', None)] and on['failed'][0]['outcome'] == 'BUSY'
        taken = until(lambda: (lambda c: c if c['outcome'] == 'SUCCEEDED' else None)(
            over(server, post(server, 'captures/snapshot').json())))  # as soon as a step has ended
        assert os.path.getsize(profile(server, taken['run'], 'workload')) == of(taken, 'workload')['bytes']
    finally:
        assert post(server, 'captures/continuous', targets=['workload'], on=False).json() == {'continuous': [], 'failed': []}


# --- what may go wrong ---

EXPECTED = {
    'good': ('SUCCEEDED', ''), 'old': ('SUCCEEDED', ''), 'busy': ('SUCCEEDED', ''), 'again': ('SUCCEEDED', ''),
    'wordy': ('FAILED', '\u00e9' * 150),
    'empty': ('EMPTY', 'nothing happened'), 'zero': ('TOO_LARGE', '2 GiB'), 'liar': ('FAILED', 'there is none'),
    'wrong': ('FAILED', 'no way  [31m<b>'), 'junk': ('FAILED', 'no profile'), 'dies': ('FAILED', ''),
    'quiet': ('FAILED', 'no grpc-status'), 'packed': ('FAILED', 'compressed'), 'endless': ('FAILED', '2 GiB'),
    'cut': ('FAILED', 'broke off'), 'odd': ('FAILED', 'grpc-status'), 'hole': ('TIMEOUT', 'no answer'),
    'refused': ('UNREACHABLE', 'no profiler server'), 'nowhere': ('UNREACHABLE', 'not known'),
}


def test_of_each_target_it_is_told_what_came_of_it(server):
    done = captured(server, *EXPECTED, duration_ms=100, run='faults')
    told = {t['target']: (t['outcome'], t['message']) for t in done['targets']}
    for name, (outcome, words) in EXPECTED.items():
        assert told[name][0] == outcome and words in told[name][1], (name, told[name])
    assert done['outcome'] == 'PARTIAL'
    assert all(t['hint'] for t in done['targets'] if t['outcome'] not in ('SUCCEEDED', 'FAILED'))
    assert of(done, 'busy')['attempts'] == 2 and of(done, 'wrong')['grpc_status'] == 7
    with open(profile(server, 'faults', 'again'), 'rb') as f:
        assert f.read() == xspace(7) and of(done, 'again')['bytes'] == len(xspace(7)) and of(done, 'again')['attempts'] == 2
    listed = next(c for c in server.api('captures').json()['captures'] if c['id'] == done['id'])
    assert of(listed, 'wordy')['message'] == 'x' + '\u00e9' * 59 + '\u2026'  # 119 bytes, and no half of a letter
    good = sorted(n for n, (o, _) in EXPECTED.items() if o == 'SUCCEEDED')
    assert sorted(h['host'] for h in server.api('run', run='faults').json()['hosts'] if h['state'] == 'ready') == good
    daemon.sentence(post(server, targets=['good'], run='faults'), 409, 'conflict', 'good', 'overwritten')
    assert captured(server, 'junk', duration_ms=100, run='nothing')['outcome'] == 'FAILED'
    assert not os.path.exists(os.path.join(server.root, 'plugins', 'profile', 'nothing'))


def test_all_targets_are_asked_for_the_same_moment_and_all_that_counts(server):
    for name in ('good', 'big'):
        server.fakes[name].calls.clear()
    began = time.time_ns()
    done = captured(server, 'good', 'big', duration_ms=150, delay_ms=50, run='both', levels={'host': 1, 'device': 0, 'python': 1},
                    options={'tpu_trace_mode': 'TRACE_COMPUTE', 'a': True, 'b': 7})
    assert done['outcome'] == 'SUCCEEDED' and done['levels'] == {'host': 1, 'device': 0, 'python': 1}
    assert done['options'] == {'tpu_trace_mode': 'TRACE_COMPUTE', 'a': True, 'b': 7}
    with open(profile(server, 'both', 'big'), 'rb') as f:
        assert f.read() == xspace(BIG)
    starts = set()
    for name in ('good', 'big'):
        (asked,) = server.fakes[name].of('Profile')
        opts = fields(asked[4][0])
        assert (asked[5], asked[6], asked[7], asked[9]) == ([os.path.join(server.root, 'plugins/profile').encode()], [b'both'],
                                                            [name.encode()], [1])
        assert [opts[n] for n in (2, 3, 4, 5, 9, 15)] == [[1], [0], [1], [1], [150], [name.encode()]]
        config = {fields(e)[1][0]: fields(fields(e)[2][0]) for e in opts[12]}
        assert config == {b'tpu_trace_mode': {1: [b'TRACE_COMPUTE']}, b'a': {2: [1]}, b'b': {3: [7]}}
        starts.add(opts[8][0])
    assert len(starts) == 1 and starts.pop() > began


def test_a_long_window_is_tried_out_and_shortened(server):
    server.fakes['heavy'].calls.clear()
    done = captured(server, 'heavy', duration_ms=60_000, run='long')
    windows = [c[1][0] for c in server.fakes['heavy'].of('Profile')]
    assert windows[:2] == [150, 450] and 20_000 < windows[2] < 28_000, windows
    assert windows[2] == done['duration_ms'] and 'shortened' in done['note'] and 'heavy' in done['note']
    assert done['outcome'] == 'SUCCEEDED'
    sessions = [c[6][0] for c in server.fakes['heavy'].of('Profile')]
    assert len(set(sessions)) == 3 and sessions[2] == b'long'


def test_a_rate_of_other_levels_is_no_reason_not_to_try_out(server):
    captured(server, 'good', duration_ms=100, levels={'host': 0, 'device': 0, 'python': 0})
    server.fakes['good'].calls.clear()
    captured(server, 'good', duration_ms=600_000, levels={'host': 3, 'device': 1, 'python': 1})
    assert [c[1][0] for c in server.fakes['good'].of('Profile')] == [150, 600_000]


def test_what_cannot_be_tried_out_is_not_captured_for_long_and_leaves_nothing(server):
    done = captured(server, 'old', duration_ms=6000)
    assert of(done, 'old')['outcome'] == 'UNSUPPORTED' and 'update jax' in of(done, 'old')['hint']
    assert not [f for f in os.listdir(os.path.join(server.root, 'plugins', 'profile')) if done['id'] in f or f == done['run']]


def test_dropped_is_nothing_kept_and_the_connection_closed(server):
    began = post(server, targets=['held'], duration_ms=600_000, delay_ms=0, run='dropped', levels={}).json()
    until(lambda: now(server, began)['phase'] == 'capturing' and is_recording(server.fakes['held']))
    assert end(server, began, drop=1).status == 202
    done = over(server, began)
    assert (done['outcome'], of(done, 'held')['outcome'], of(done, 'held')['bytes']) == ('CANCELLED', 'CANCELLED', None)
    until(server.fakes['held'].behave.left.is_set)
    assert not server.fakes['held'].behave.ended.is_set()
    assert not os.path.exists(os.path.join(server.root, 'plugins', 'profile', 'dropped'))


def test_an_end_before_the_window_records_nothing(server):
    began = post(server, targets=['good'], delay_ms=600_000).json()
    calls = len(server.fakes['good'].calls)
    assert end(server, began).status == 202
    assert over(server, began)['outcome'] == 'CANCELLED' and len(server.fakes['good'].calls) == calls


def test_snapshots_empty_what_is_kept(server):
    ring = server.fakes['ring'].behave
    assert [c['target'] for c in post(server, 'captures/continuous', targets=['ring'], on=True).json()['continuous']] == ['ring']
    again = post(server, 'captures/continuous', targets=['ring'], on=True).json()
    assert again['continuous'][0]['state'] == 'running' and again['failed'][0]['outcome'] == 'BUSY'
    first = captured(server, 'ring', what='captures/snapshot')
    second = over(server, post(server, 'captures/snapshot').json())
    assert [first['outcome'], of(second, 'ring')['outcome']] == ['SUCCEEDED', 'EMPTY']
    assert 'since the last snapshot' in of(second, 'ring')['message']
    ring.runs = False  # the workload was restarted
    lost = captured(server, 'ring', what='captures/snapshot')
    assert of(lost, 'ring')['grpc_status'] == 5
    assert server.api('captures').json()['continuous'] == []
    daemon.sentence(post(server, 'captures/snapshot'), 409, 'conflict', 'no target')


# --- who may, and what is refused ---

def test_a_get_captures_nothing_and_other_sites_neither(server):
    before = len(server.api('captures').json()['captures'])
    good = json.dumps({'targets': ['good']})
    for what in ('captures', 'captures/continuous', 'captures/snapshot'):
        daemon.sentence(server.request('POST', '/api/v1/' + what, {'content-type': 'text/plain'}, good), 403, 'denied', 'x-xprofd')
        for headers in ({'origin': 'http://elsewhere.example'}, {'sec-fetch-site': 'cross-site'}):
            daemon.sentence(server.request('POST', '/api/v1/' + what, dict(OURS, **headers), good), 403, 'denied', 'another site')
    for what in ('captures/continuous', 'captures/snapshot'):
        daemon.sentence(server.get('/api/v1/' + what), 405, 'method_not_allowed', 'method')
    daemon.sentence(server.request('DELETE', '/api/v1/captures?id=x', {'sec-fetch-site': 'cross-site'}), 403, 'denied', 'another site')
    said = server.compat('capture_profile', service_addr='127.0.0.1:9999', duration=100)
    assert said.status == 500 and 'Captures' in said.json()['error']
    assert len(server.api('captures').json()['captures']) == before


@pytest.mark.parametrize('wish, status, words', [
    ({'targets': ['stranger']}, 404, 'no registered target'),
    ({'targets': ['127.0.0.1:9999']}, 400, 'targets[0]'),
    ({'targets': ['../good']}, 400, 'targets[0]'),
    ({'targets': ['good\x00']}, 400, 'object of JSON'),
    ({'targets': ['good', 'good']}, 400, 'twice'),
    ({'targets': []}, 400, 'targets'), ({}, 400, 'targets'), ({'targets': 'good'}, 400, 'targets'),
    ({'targets': ['good'], 'run': '../up'}, 400, 'run is'), ({'targets': ['good'], 'run': 'a.b'}, 400, 'run is'),
    ({'targets': ['good'], 'run': 'x' * 129}, 400, 'run is'), ({'targets': ['good'], 'run': 7}, 400, 'run is'),
    ({'targets': ['good'], 'duration_ms': 99}, 400, 'duration_ms'), ({'targets': ['good'], 'duration_ms': 600_001}, 400, 'duration_ms'),
    ({'targets': ['good'], 'duration_ms': '100'}, 400, 'duration_ms'), ({'targets': ['good'], 'delay_ms': -1}, 400, 'delay_ms'),
    ({'targets': ['good'], 'levels': {'hots': 0}}, 400, 'hots'),
    ({'targets': ['good'], 'levels': {'host': 4}}, 400, 'host'), ({'targets': ['good'], 'levels': []}, 400, 'levels'),
    ({'targets': ['good'], 'options': {'a b': 1}}, 400, 'options'), ({'targets': ['good'], 'options': {'a': 1.5}}, 400, 'options.a'),
    ({'targets': ['good'], 'options': {'a': 'x' * 257}}, 400, 'options.a'),
    ({'targets': ['good'], 'options': {'o%d' % i: 1 for i in range(33)}}, 400, '32'),
    ({'targets': ['good'], 'service_addr': '10.0.0.1:1'}, 400, 'service_addr'),
])
def test_what_is_wrong_with_a_wish_is_said(server, wish, status, words):
    calls = len(server.fakes['good'].calls)
    daemon.sentence(post(server, **wish), status, {400: 'bad_request', 404: 'not_found'}[status], words)
    assert len(server.fakes['good'].calls) == calls


def test_unknown_captures_are_not_found(server):
    daemon.sentence(server.api('captures', id='0' * 16), 404, 'not_found', 'no capture')
    daemon.sentence(end(server, {'id': '../x'}), 404, 'not_found', 'no capture')
    daemon.sentence(post(server, 'captures/continuous', targets=['stranger'], on=True), 404, 'not_found', 'stranger')
    daemon.sentence(post(server, 'captures/continuous', targets=['good']), 400, 'bad_request', 'on is')
    daemon.sentence(post(server, 'captures/continuous', targets=['good'], on=True, levels={'devise': 1}), 400, 'bad_request', 'devise')


def test_no_more_than_eight_run_at_once(server):
    began = [post(server, targets=[n], delay_ms=600_000).json()
             for n in ('good', 'big', 'empty', 'old', 'zero', 'liar', 'junk', 'wrong')]
    daemon.sentence(post(server, targets=['heavy']), 503, 'busy', '8 captures')
    assert len({c['run'] for c in began}) == 8  # of one second, and yet each its own
    for c in began:
        end(server, c)
    assert {over(server, c)['outcome'] for c in began} == {'CANCELLED'}


def test_changes_are_told_as_they_happen(server):
    with socket.create_connection(('127.0.0.1', server.port), timeout=20) as s, s.makefile('rb') as f:
        s.sendall(b'GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n')

        limit = time.monotonic() + 30

        def told(*names):
            """The next data of each, whatever comes between; comments come for ever, so that the stream's time is no bound."""
            seen = {}
            while set(seen) != set(names):
                line = f.readline()
                assert line and time.monotonic() < limit, 'the stream ended, or only %s came' % list(seen)
                if line.startswith(b'event: ') and line[7:-1] in names:
                    seen[line[7:-1]] = f.readline()
            return seen
        first = told(b'captures', b'runs')
        done = captured(server, 'good', duration_ms=100)
        then = told(b'captures', b'runs')
        assert done['outcome'] == 'SUCCEEDED' and then[b'captures'] != first[b'captures']


def test_what_came_of_captures_is_counted(server):
    admin = re.search(r'metrics on port (\d+)', ''.join(server.lines)).group(1)
    c = socket.create_connection(('127.0.0.1', int(admin)), timeout=20)
    with c, c.makefile('rb') as f:
        c.sendall(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        text = f.read().decode()
    values = dict(re.findall(r'^(xprofd_capture\S+) (\d+)\r?$', text, re.M))
    assert values['xprofd_captures_running'] == '0'
    for name in ('captures_total{outcome="SUCCEEDED"}', 'captures_total{outcome="PARTIAL"}', 'capture_targets_total{outcome="TIMEOUT"}',
                 'capture_bytes_total'):
        assert int(values['xprofd_' + name]) > 0, name
    series = re.findall(r'^(\w+\{[^}]*\}) ', text, re.M)
    assert len(series) == len(set(series)), 'a series is there twice'


@pytest.mark.parametrize('flags, words', [
    (['--target', 'nonsense'], '--target=nonsense'), (['--target', 'a=h:1', '--target', 'a=h:2'], 'another target'),
    (['--target', '..=h:1'], 'no name'), (['--target', 'h:99999'], 'HOST:PORT'),
])
def test_a_target_that_is_none_is_refused_at_the_start(flags, words):
    code, _, err = daemon.run_to_end('--logdir', '.', '--port', 0, *flags)
    assert code == 2 and words in err


def test_who_may_edit_may_capture_and_it_is_told(start, server, tmp_path):
    (tmp_path / 'a').mkdir()
    (tmp_path / 'b').mkdir()
    rights = {'viewers': ['user:eve@x.org'], 'editors': ['user:ann@x.org']}
    (tmp_path / 'projects.json').write_text(json.dumps({'projects': {
        n: dict(rights, roots=[str(tmp_path / n)]) for n in ('a', 'b')}}))
    d = start('--projects', tmp_path / 'projects.json', '--default-project', 'a', '--auth', 'header', '--trusted-header', 'x-user',
              '--audit-log', tmp_path / 'audit', *['--target=%s=127.0.0.1:%d' % (n, server.fakes[n].port) for n in ('good', 'wrong')])
    ann, eve = (dict(OURS, **{'x-user': n + '@x.org'}) for n in ('ann', 'eve'))
    daemon.sentence(post(d, headers=eve, base='/p/a/api/v1/', targets=['good']), 403, 'denied', 'right to edit')
    assert d.get('/p/a/api/v1/captures', eve).json()['enabled'] is True
    assert d.get('/p/a/api/v1/captures', {}).status == 401
    other = d.get('/p/b/api/v1/captures', ann).json()
    assert other['enabled'] is False and 'project' in other['reason'] and other['targets'] == other['captures'] == []
    daemon.sentence(post(d, headers=ann, base='/p/b/api/v1/', targets=['good']), 404, 'not_found', 'project')
    r = post(d, headers=ann, base='/p/a/api/v1/', targets=['good'], duration_ms=100)
    assert r.status == 202 and r.json()['by'] == 'user:ann@x.org'
    until(lambda: d.get('/p/a/api/v1/captures?id=' + r.json()['id'], ann).json()['outcome'] == 'SUCCEEDED')
    assert len(files(tmp_path / 'a')) == 1
    for names, on, status in ((['stranger'], True, 404), (['good', 'wrong'], True, 200), (['good'], False, 200)):
        assert post(d, 'captures/continuous', ann, '/p/a/api/v1/', targets=names, on=on).status == status
    assert d.request('DELETE', '/p/a/api/v1/captures?id=none', ann).status == 404
    told = [json.loads(line) for line in (tmp_path / 'audit').read_text().splitlines()]
    assert [(e['what'], e['who'], e['outcome'], e['detail']) for e in told if e['what'].startswith(('capture', 'continuous'))] == [
        ('capture_begun', 'user:eve@x.org', 'refused', 'the right is missing'),
        ('capture_begun', 'user:ann@x.org', 'ok', '%s into %s: good' % (r.json()['id'], r.json()['run'])),
        ('continuous_started', 'user:ann@x.org', 'failed', '"stranger" is no registered target: they are what --target says'),
        ('continuous_started', 'user:ann@x.org', 'ok', 'good'),
        ('continuous_started', 'user:ann@x.org', 'failed', 'wrong: no way  [31m<b>: gRPC status 7'),
        ('continuous_stopped', 'user:ann@x.org', 'ok', 'good'),
        ('capture_ended', 'user:ann@x.org', 'failed', 'there is no capture of that id; the last 100 are known, of this process')]


def test_without_targets_the_reason_is_said(sample):
    got = sample.api('captures').json()
    assert got == dict(got, enabled=False, targets=[], continuous=[], captures=[]) and '--target' in got['reason']
    daemon.sentence(post(sample, targets=['x']), 404, 'not_found', '--target')


def test_a_frontend_of_several_makes_none_and_says_so(start, tmp_path):
    front = start('frontend', '--logdir', tmp_path, '--shards', 'static:127.0.0.1:1')
    got = front.api('captures').json()
    assert got['enabled'] is False and 'frontends' in got['reason']
    daemon.sentence(post(front, targets=['x']), 404, 'not_found', 'frontends')
    code, _, err = daemon.run_to_end('frontend', '--logdir', tmp_path, '--shards', 'static:127.0.0.1:1', '--target', 'a=h:1')
    assert code == 2 and '--target' in err


def test_the_end_of_the_process_drops_what_is_under_way(start, server, tmp_path):
    d = start('--logdir', tmp_path, '--target', 'kept=127.0.0.1:%d' % server.fakes['kept'].port)
    began = post(d, targets=['kept'], duration_ms=600_000, run='dropped').json()
    until(lambda: now(d, began)['phase'] == 'capturing' and is_recording(server.fakes['kept']))
    assert d.stop(signal.SIGTERM) == 0
    until(server.fakes['kept'].behave.left.is_set)
    assert files(tmp_path) == []


# --- a bucket: targets write themselves ---

@pytest.fixture
def bucket(start, tmp_path):
    """A server of a bucket that is at bucket.store, with targets: bucket.fakes by name."""
    (tmp_path / 'pool').mkdir()
    store = fake_store.Fake(str(tmp_path)).start()
    place = str(tmp_path / 'pool' / 'logs' / 'plugins' / 'profile')
    fakes = {'ok': FakeTarget(writes(place, xspace(77))), 'zero': FakeTarget(writes(place, b'')), 'liar': FakeTarget(lambda *_: b''),
             'empty': FakeTarget(lambda *_: response(empty=True)), 'denied': FakeTarget(abort(grpc.StatusCode.INTERNAL, 'HTTP 403')),
             'held': FakeTarget(Held())}
    d = start('--logdir', 'gs://pool/logs', '--gcs-endpoint', store.url, '--bucket-auth', 'none',
              *['--target=%s=127.0.0.1:%d' % (n, f.port) for n, f in fakes.items()])
    d.fakes, d.store = fakes, store
    yield d
    store.shutdown()
    store.server_close()
    for f in fakes.values():
        f.stop()


def test_into_a_bucket_the_targets_write_and_the_object_is_looked_at(bucket):
    assert bucket.api('captures').json()['mode'] == 'write'
    done = captured(bucket, 'ok', 'zero', 'liar', 'empty', 'denied', duration_ms=100, run='one')
    assert {t['target']: t['outcome'] for t in done['targets']} == {
        'ok': 'SUCCEEDED', 'zero': 'TOO_LARGE', 'liar': 'FAILED', 'empty': 'EMPTY', 'denied': 'FAILED'}
    assert of(done, 'ok')['bytes'] == len(xspace(77)) and 'bucket' in of(done, 'denied')['hint']
    (asked,) = bucket.fakes['ok'].of('Profile')
    assert asked[5] == [b'gs://pool/logs/plugins/profile'] and 9 not in asked
    daemon.sentence(post(bucket, targets=['ok'], run='one'), 409, 'conflict', 'ok')
    assert 'one' in bucket.api('runs').text()


def test_an_end_that_comes_while_a_profile_is_looked_for_is_seen(bucket):
    answer, looked, go = (threading.Event() for _ in range(3))
    rule, write = bucket.store.faults.rule, bucket.fakes['ok'].behave
    bucket.fakes['ok'].behave = lambda *asked: answer.wait(30) and write(*asked)

    def slow(path):
        if 'ok.xplane.pb' in path:
            looked.set()
            go.wait(30)
        return rule(path)
    bucket.store.faults.rule = slow
    began = post(bucket, targets=['held', 'ok'], duration_ms=600_000).json()
    until(lambda: now(bucket, began)['phase'] == 'capturing')  # there is nothing to do about the other one for long
    answer.set()
    until(looked.is_set)
    assert end(bucket, began, drop=1).status == 202
    go.set()
    assert of(over(bucket, began), 'held')['outcome'] == 'CANCELLED'
    until(bucket.fakes['held'].behave.left.is_set)


def test_captures_that_begin_at_once_have_a_run_each(bucket):
    rule, both, first = bucket.store.faults.rule, threading.Barrier(2), [1, 2]

    def together(path):  # the looks at the folder of the name that both have chosen
        if re.search(r'profile%2F\d{4}_', path) and first:
            first.pop()
            both.wait(20)
        return rule(path)
    bucket.store.faults.rule = together
    got = []
    threads = [threading.Thread(target=lambda n=n: got.append(post(bucket, targets=[n], duration_ms=100))) for n in ('ok', 'liar')]
    for t in threads:
        t.start()
    for t in threads:
        t.join(40)
    assert [r.status for r in got] == [202, 202] and got[0].json()['run'] != got[1].json()['run'] and not first
    for r in got:
        over(bucket, r.json())
