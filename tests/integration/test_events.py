"""Server-sent events: what they say, how they end, and how many there may be."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import daemon
import pytest

MAX = 128


class Stream:
    """An open event stream over HTTP/1.1."""

    def __init__(self, d, **kw):
        self.sock = socket.create_connection(('127.0.0.1', d.port), timeout=20)
        path = '/api/v1/events' + ('?' + daemon.query(**kw) if kw else '')
        self.sock.sendall(('GET %s HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n' % path).encode())
        self.raw = self.sock.makefile('rb')
        self.status = int(self.raw.readline().split()[1])
        self.headers = {}
        for line in iter(self.raw.readline, b'\r\n'):
            k, v = line.decode().split(':', 1)
            self.headers[k.lower()] = v.strip()
        self.text = b''

    def chunk(self):
        size = int(self.raw.readline(), 16)
        body = self.raw.read(size)
        assert self.raw.readline() == b'\r\n'
        return body

    def event(self):
        """The next one: (name, data); None at the orderly end of the stream."""
        while True:
            while b'\n\n' not in self.text:
                more = self.chunk()
                if not more:
                    return None
                self.text += more
            block, self.text = self.text.split(b'\n\n', 1)
            fields = dict(x.split(': ', 1) for x in block.decode().split('\n') if not x.startswith(':'))
            if fields:
                return fields['event'], json.loads(fields['data'])

    def close(self):
        self.raw.close()
        self.sock.close()


def test_the_list_of_runs_is_told_when_it_changes(start, tmp_path):
    daemon.generate(tmp_path, 'first', '--steps', '1')
    d = start('--logdir', tmp_path)
    s = Stream(d)
    assert s.status == 200 and s.headers['content-type'].startswith('text/event-stream')
    assert 'content-encoding' not in s.headers and s.headers['cache-control'] == 'no-store'
    name, now = s.event()
    assert name == 'runs' and now['version']
    daemon.generate(tmp_path, 'second', '--steps', '1')
    name, then = s.event()
    assert name == 'runs' and then['version'] != now['version']
    s.close()


def test_a_load_is_told_to_its_end(start, tmp_path):
    daemon.generate(tmp_path, 'big', '--events', '400000')
    d = start('--logdir', tmp_path)
    s, seen = Stream(d, run='big', host='host-0'), []
    while not seen or seen[-1]['state'] != 'ready':
        name, data = s.event()
        assert name == 'progress'
        seen.append(data)
    assert seen[-1]['bytes_done'] == seen[-1]['bytes_total'] and seen[-1]['events'] > 300000
    assert [x['bytes_done'] for x in seen] == sorted(x['bytes_done'] for x in seen)
    s.close()


def test_what_is_not_there_is_refused_like_everywhere(sample):
    daemon.sentence(sample.api('events', run='nope'), 404, 'not_found', 'nope')
    daemon.sentence(sample.api('events', run='sample', host='nope'), 404, 'not_found', 'nope')


def test_a_head_request_gets_the_head_alone(sample):
    r = sample.request('HEAD', '/api/v1/events')
    assert r.status == 200 and r.type.startswith('text/event-stream') and r.body == b''


def test_a_drain_ends_streams_in_order(start, tmp_path):
    daemon.generate(tmp_path, 'one', '--steps', '1')
    d = start('--logdir', tmp_path)
    streams = [Stream(d), Stream(d, run='one'), Stream(d)]
    assert streams[0].event()[0] == 'runs'
    began = time.monotonic()
    d.proc.send_signal(signal.SIGTERM)
    for s in streams:
        while s.event() is not None:
            pass
        s.close()
    assert d.proc.wait(10) == 0 and time.monotonic() - began < 9  # after ten seconds they would be cut


def test_there_is_a_limit_and_who_leaves_makes_room(start, tmp_path):
    daemon.generate(tmp_path, 'one', '--steps', '1')
    d = start('--logdir', tmp_path)
    streams = [Stream(d) for _ in range(MAX)]
    assert all(s.status == 200 for s in streams)
    refused = d.api('events')
    daemon.sentence(refused, 503, 'busy', 'streams')
    assert refused.headers['retry-after']
    assert d.api('runs').status == 200
    for s in streams:
        s.close()
    end = time.monotonic() + 15
    while True:
        s = Stream(d)
        if s.status == 200:
            break
        s.close()
        assert time.monotonic() < end, 'those who left are still counted'
        time.sleep(0.3)
    assert s.event()[0] == 'runs'
    s.close()


def test_events_come_over_http2(start, tmp_path):
    curl = shutil.which('curl')
    if not curl or 'HTTP2' not in subprocess.run([curl, '-V'], stdout=subprocess.PIPE, check=True).stdout.decode():
        pytest.skip('curl with HTTP/2 is not installed')
    daemon.generate(tmp_path, 'one', '--steps', '1')
    d = start('--logdir', tmp_path)
    c = subprocess.Popen([curl, '-sN', '--http2-prior-knowledge', 'http://127.0.0.1:%d/api/v1/events' % d.port],
                         stdout=subprocess.PIPE)
    lines = [c.stdout.readline() for _ in range(4)]
    assert lines[2] == b'event: runs\n' and lines[3].startswith(b'data: {"version":"'), lines
    d.proc.send_signal(signal.SIGTERM)
    assert c.wait(10) == 0, 'the stream was not ended, but cut'
    assert d.proc.wait(10) == 0
    c.stdout.close()


def test_without_streams_the_thread_sleeps(start, tmp_path):
    daemon.generate(tmp_path, 'one', '--steps', '1')
    d = start('--logdir', tmp_path)
    s = Stream(d)
    assert s.event()[0] == 'runs'
    s.close()
    time.sleep(4)

    def switches():
        total = 0
        for task in os.listdir('/proc/%d/task' % d.pid):
            with open('/proc/%d/task/%s/status' % (d.pid, task)) as f:
                total += sum(int(x.split()[1]) for x in f if 'ctxt_switches' in x)
        return total
    before = switches()
    time.sleep(3)
    assert switches() - before < 60
