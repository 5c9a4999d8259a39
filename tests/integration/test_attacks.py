"""Attacks on the listener: each is bounded in memory and time, and others are served meanwhile.

Frames are written by hand, as no well-behaved client would send them. Every attack runs for a moment on one connection or a few;
`served` asks from elsewhere all the while and fails when an answer is wrong or late. `loadtest/attack` runs the same for longer and
measures how late.
"""
import socket
import struct
import threading
import time

import pytest

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, PRIORITY, RST, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
ATTACK_S = 0.6
RSS_MB = 48  # of growth, whatever is sent
LATE_S = 4  # for others, on two cores that the attacker has too


def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


def text(s):
    return bytes([len(s)]) + s


def get(path=b'/api/v1/status', host=b'localhost'):
    """A request's header block: GET, http, path, authority; nothing indexed anew."""
    return b'\x82\x86\x04' + text(path) + b'\x01' + text(host)


def connect(d, settings=b''):
    s = socket.create_connection(('127.0.0.1', d.port), timeout=10)
    s.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
    return s


def leave(s):
    """Also where a thread reads."""
    try:
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    s.close()


class Reader(threading.Thread):
    """Takes what the server says, so that its answers do not stop the attack; remembers the end."""

    def __init__(self, s):
        super().__init__(daemon=True)
        self.s, self.bytes, self.ended = s, 0, False
        self.start()

    def run(self):
        try:
            while True:
                got = self.s.recv(65536)
                if not got:
                    break
                self.bytes += len(got)
        except OSError:
            pass
        self.ended = True


@pytest.fixture(scope='module', autouse=True)
def slow(sample):
    """Connections whose body or head does not come."""
    conns = []
    for begun in (b'POST /api/v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx',
                  b'POST /api/v1/status HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx',
                  b'GET /api/v1/status HTTP/1.1\r\nHost:', PREFACE[:10]):
        conns.append(socket.create_connection(('127.0.0.1', sample.port), timeout=40))
        conns[-1].sendall(begun)
    yield conns
    for s in conns:
        s.close()


@pytest.fixture
def served(sample):
    """Asks once in a while; in the end no answer was wrong, none late, and memory is where it was."""
    late, wrong, stop = [], [], threading.Event()
    sample.trace('sample', hosts='host-0', resolution=8000)
    before = sample.status_kb('VmRSS')

    def ask():
        while not stop.is_set():
            began = time.monotonic()
            try:
                r = sample.api('status')
                if r.status != 200:
                    wrong.append(r)
            except OSError as e:
                wrong.append(e)
            late.append(time.monotonic() - began)
            time.sleep(0.02)
    asker = threading.Thread(target=ask)
    asker.start()
    yield sample
    stop.set()
    asker.join(20)
    assert not wrong, wrong[:3]
    assert late
    late.sort()
    assert late[len(late) * 99 // 100 - 1] < LATE_S, late[-5:]
    assert (sample.status_kb('VmRSS') - before) / 1024 < RSS_MB
    assert sample.alive()


def pour(s, chunk, seconds=ATTACK_S):
    """Sends chunk again and again; True when the server ended it."""
    end = time.monotonic() + seconds
    s.settimeout(1)
    try:
        while time.monotonic() < end:
            s.sendall(chunk)
    except socket.timeout:
        return False  # it does not read any more: bounded as well
    except OSError:
        return True
    return False


def pour_streams(s, make, seconds=ATTACK_S):
    """The same with new streams each time: make(stream id) is what goes out."""
    end, stream = time.monotonic() + seconds, 1
    s.settimeout(1)
    try:
        while time.monotonic() < end and stream < 1 << 30:
            s.sendall(b''.join(make(stream + 2 * i) for i in range(50)))
            stream += 100
    except socket.timeout:
        return False
    except OSError:
        return True
    return False


@pytest.mark.parametrize('name, make', [
    # CVE-2023-44487: a request and its reset.
    ('rapid reset', lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n, get()) + frame(RST, 0, n, struct.pack('>I', 8))),
    # CVE-2025-8671: the client makes the server do the reset, by frames that are wrong for a stream.
    ('made you reset: window of 0', lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n, get())
     + frame(WINDOW, 0, n, struct.pack('>I', 0))),
    ('made you reset: window overflow', lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n, get())
     + frame(WINDOW, 0, n, struct.pack('>I', 0x7fffffff))),
    ('made you reset: data after the end', lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n, get())
     + frame(DATA, 0, n, b'x')),
    ('made you reset: depends on itself', lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n, get())
     + frame(PRIORITY, 0, n, struct.pack('>IB', n, 1))),
    # CVE-2019-9514: requests that are wrong, each to be answered by a reset.
    ('reset flood', lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n, b'\x82\x82\x82')),
    # CVE-2019-9516: header names and values of no length.
    ('empty headers', lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n, get() + b'\x40\x00\x00' * 500)),
])
def test_streams_that_are_made_to_be_reset_are_bounded(served, name, make):
    s = connect(served)
    reader = Reader(s)
    pour_streams(s, make)
    leave(s)
    reader.join(10)


@pytest.mark.parametrize('name, chunk', [
    ('CVE-2019-9512 pings', frame(PING, 0, 0, b'12345678') * 200),
    ('CVE-2019-9515 settings', frame(SETTINGS, 0, 0, struct.pack('>HI', 3, 100)) * 200),
    ('CVE-2019-9513 priorities', b''.join(frame(PRIORITY, 0, 1 + 2 * i, struct.pack('>IB', 1 + 2 * ((i * 7) % 99), i & 255))
                                          for i in range(100))),
    ('window updates', frame(WINDOW, 0, 0, struct.pack('>I', 1)) * 200),
    ('unknown frames', frame(0xee, 0, 0, b'x' * 100) * 100),
])
@pytest.mark.parametrize('reads', [True, False])
def test_floods_of_small_frames_are_bounded(served, name, chunk, reads):
    s = connect(served)
    reader = Reader(s) if reads else None
    pour(s, chunk)
    leave(s)
    if reader:
        reader.join(10)


def test_continuations_without_end_are_cut(served):
    """A header block that never ends: frames of it are no request, and must not pile up."""
    s = connect(served)
    Reader(s)
    s.sendall(frame(HEADERS, 0, 1, get()))
    assert pour(s, frame(CONTINUATION, 0, 1, b'\x40' + text(b'a') + text(b'b' * 100)) * 100), 'never cut'
    s.close()


def test_empty_frames_are_bounded(served):
    """CVE-2019-9518: frames of no length that do not end their stream."""
    for chunk in (frame(DATA, 0, 1) * 500, frame(CONTINUATION, 0, 1) * 500):
        s = connect(served)
        Reader(s)
        s.sendall(frame(HEADERS, END_HEADERS if chunk[3] == DATA else 0, 1, b'\x83\x86\x04' + text(b'/x') + b'\x01' + text(b'localhost')))
        pour(s, chunk)
        s.close()


def test_a_window_opened_byte_by_byte_is_bounded(served):
    """CVE-2019-9511: large answers on many streams, taken a byte at a time."""
    s = connect(served, struct.pack('>HI', 4, 0))  # streams begin with no window
    Reader(s)
    path = b'/data/plugin/profile/data?run=sample&tag=trace_viewer@&hosts=host-0&resolution=8000'
    for n in range(1, 100, 2):
        s.sendall(frame(HEADERS, END_STREAM | END_HEADERS, n, b'\x82\x86\x04' + text(path) + b'\x01' + text(b'localhost')))
    pour(s, b''.join(frame(WINDOW, 0, n, struct.pack('>I', 1)) for n in range(1, 100, 2)))
    s.close()


def test_answers_that_nobody_takes_are_bounded(served):
    """CVE-2019-9517: windows wide open, the socket never read. A stream costs 100 kB at most (the one who does not take
    gzip gets it inflated piece by piece), a connection has 100 of them."""
    conns = []
    path = b'/data/plugin/profile/data?run=sample&tag=trace_viewer@&hosts=host-0&resolution=8000'
    for _ in range(3):
        s = connect(served, struct.pack('>HI', 4, 0x7fffffff))
        s.sendall(frame(WINDOW, 0, 0, struct.pack('>I', 0x7ffe0000)))
        for n in range(1, 180, 2):
            s.sendall(frame(HEADERS, END_STREAM | END_HEADERS, n, b'\x82\x86\x04' + text(path) + b'\x01' + text(b'localhost')))
        conns.append(s)
    time.sleep(ATTACK_S)
    for s in conns:
        s.close()


def test_a_table_that_grows_is_refused_or_bounded(served):
    """Header tables asked for as large as the protocol can say, and filled."""
    s = connect(served, struct.pack('>HI', 1, 0x7fffffff))
    Reader(s)
    pour_streams(s, lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n,
                                    get() + b''.join(b'\x40' + text(b'n%d' % (n + i)) + text(b'v' * 100) for i in range(20))))
    s.close()


def test_slow_heads_end_and_leave_room_for_others(served):
    """Slowloris: many connections that never finish their head."""
    conns = [socket.create_connection(('127.0.0.1', served.port), timeout=10) for _ in range(300)]
    for s in conns:
        s.sendall(b'GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n')
    for _ in range(int(ATTACK_S * 5)):
        for s in conns:
            try:
                s.sendall(b'X-a: b\r\n')
            except OSError:
                pass
        time.sleep(0.2)
    for s in conns:
        s.close()


def test_pipelined_requests_whose_answers_nobody_takes_are_bounded(served):
    s = socket.create_connection(('127.0.0.1', served.port), timeout=10)
    pour(s, b'GET /data/plugin/profile/data?run=sample&tag=trace_viewer@&hosts=host-0&resolution=8000 HTTP/1.1\r\nHost: localhost\r\n\r\n'
         * 50)
    s.close()


SMUGGLE = b'GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\n\r\n'


@pytest.mark.parametrize('name, head', [
    ('two lengths', b'Content-Length: 0\r\nContent-Length: %d\r\n' % len(SMUGGLE)),
    ('length and chunked', b'Content-Length: %d\r\nTransfer-Encoding: chunked\r\n' % len(SMUGGLE)),
    ('chunked and length', b'Transfer-Encoding: chunked\r\nContent-Length: %d\r\n' % len(SMUGGLE)),
    ('length with a sign', b'Content-Length: +%d\r\n' % len(SMUGGLE)),
    ('a list of lengths', b'Content-Length: 0, %d\r\n' % len(SMUGGLE)),
    ('length in hexadecimal', b'Content-Length: 0x10\r\n'),
    ('negative length', b'Content-Length: -1\r\n'),
    ('unknown coding', b'Transfer-Encoding: identity, chunked\r\n'),
    ('chunked twice', b'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'),
    ('coding after a tab', b'Transfer-Encoding:\tchunked\r\nContent-Length: %d\r\n' % len(SMUGGLE)),
    ('coding in disguise', b'Transfer-Encoding : chunked\r\nContent-Length: %d\r\n' % len(SMUGGLE)),
    ('a folded line', b'X-a: b\r\n Transfer-Encoding: chunked\r\n'),
])
def test_ambiguous_framing_is_never_two_requests(sample, name, head):
    """Whatever the answer to the first, the bytes that one reading takes for its body are no second request, or the
    connection ends after one answer: nothing behind a proxy is ever answered out of turn."""
    s = socket.create_connection(('127.0.0.1', sample.port), timeout=10)
    body = b'0\r\n\r\n' + SMUGGLE if b'hunked' in head else SMUGGLE
    s.sendall(b'POST /api/v1/status HTTP/1.1\r\nHost: localhost\r\n' + head + b'\r\n' + body)
    s.shutdown(socket.SHUT_WR)
    got = b''
    try:
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except OSError:
        pass
    s.close()
    assert got.count(b'HTTP/1.1 ') <= 1, got
    assert b'"runs"' not in got


@pytest.mark.parametrize('request_bytes, status', [
    (b'GET /api/v1/status HTTP/1.1\r\n\r\n', b'400'),
    (b'GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n', b'421'),
    (b'GET http://evil.example/api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n', None),
    (b'GET /api/v1/status HTTP/1.1\r\nHost: evil.example\r\n\r\n', b'421'),
])
def test_a_host_that_is_missing_or_not_ours_is_refused(sample, request_bytes, status):
    s = socket.create_connection(('127.0.0.1', sample.port), timeout=10)
    s.sendall(request_bytes)
    s.shutdown(socket.SHUT_WR)
    got = s.recv(65536)
    s.close()
    line = got.split(b'\r\n')[0]
    assert line.startswith(b'HTTP/1.1 4'), got
    assert status is None or line.split()[1] == status


# --- what is malformed, and what is too large ---

def said(d, data):
    """All that is answered; a reset is an end."""
    got = b''
    with socket.create_connection(('127.0.0.1', d.port), timeout=10) as s:
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while True:
                more = s.recv(65536)
                if not more:
                    break
                got += more
        except OSError:
            pass
    return got


GET = b'GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n'
CHUNKED = b'POST /api/v1/status HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'


@pytest.mark.parametrize('name, data', [
    ('a CR in a value', GET + b'X-a: b\rc\r\n\r\n'),
    ('a NUL in a value', GET + b'X-a: b\0c\r\n\r\n'),
    ('a NUL in a name', GET + b'X\0a: b\r\n\r\n'),
    ('a value without a name', GET + b': b\r\n\r\n'),
    ('a line without a colon', GET + b'nonsense\r\n\r\n'),
    ('HTTP/0.9', b'GET /api/v1/status\r\n'),
    ('CONNECT', b'CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n'),
    ('a chunk larger than any number', CHUNKED + b'fffffffffffffffff\r\nx'),
    ('a chunk smaller than nothing', CHUNKED + b'-1\r\nx\r\n0\r\n\r\n' + SMUGGLE),
    ('a chunk in C', CHUNKED + b'0x1\r\nx\r\n0\r\n\r\n' + SMUGGLE),
    ('chunks by line feeds', CHUNKED + b'1\nx\n0\n\n' + SMUGGLE),
    ('a length behind the chunks', CHUNKED + b'0\r\nContent-Length: 100\r\n\r\n' + SMUGGLE),
    ('a head without end', GET + b'X-a: ' + b'b' * 600000),
    ('a long line', GET + b'X-a: ' + b'b' * 600000 + b'\r\n\r\n'),
    ('many lines', GET + b'X-a: b\r\n' * 200 + b'\r\n'),
    ('a long target', b'GET /api/v1/status?' + b'x' * 100000 + b' HTTP/1.1\r\nHost: localhost\r\n\r\n'),
    ('a long body', b'POST /api/v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n' + b'x' * 3000000),
    ('a long body in chunks', CHUNKED + (b'10000\r\n' + b'x' * 65536 + b'\r\n') * 40),
    ('a long word behind the size of a chunk', CHUNKED + b'1;' + b'a' * 3000000),
    ('a body that is announced only', b'POST /api/v1/status HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n'
                                      b'Content-Length: 99999999\r\n\r\n'),
])
def test_requests_that_are_malformed_or_too_large_get_one_refusal(served, name, data):
    got = said(served, data)
    assert got.count(b'HTTP/1.1 ') <= 1, got[:500]
    assert not got or got.startswith(b'HTTP/1.1 4'), got[:500]


def answered(d, frames):
    """Frames of the answer that say how it went: (type, stream, first bytes), until a ping that was sent behind comes back."""
    s, got, end = connect(d), b'', frame(PING, ACK, 0, b'enough!!')
    out, at = [], 0
    try:
        s.sendall(frames + frame(PING, 0, 0, b'enough!!'))
        while end not in got:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except OSError:
        pass
    s.close()
    while at + 9 <= len(got):
        n, kind, stream = int.from_bytes(got[at:at + 3], 'big'), got[at + 3], int.from_bytes(got[at + 5:at + 9], 'big')
        out.append((kind, stream, got[at + 9:at + 9 + min(n, 8)]))
        at += 9 + n
    return out


GOAWAY = 7
ONE = END_STREAM | END_HEADERS
POST = b'\x83\x86\x04' + text(b'/api/v1/status') + b'\x01' + text(b'localhost')


def field(name, value):
    return b'\0' + text(name) + text(value)


@pytest.mark.parametrize('name, frames', [
    ('a name in capitals', frame(HEADERS, ONE, 1, get() + field(b'X-Upper', b'a'))),
    ('connection', frame(HEADERS, ONE, 1, get() + field(b'connection', b'close'))),
    ('transfer-encoding', frame(HEADERS, ONE, 1, get() + field(b'transfer-encoding', b'chunked'))),
    ('two paths', frame(HEADERS, ONE, 1, get() + b'\x04' + text(b'/api/v1/runs'))),
    ('a path behind fields', frame(HEADERS, ONE, 1, b'\x82\x86' + field(b'a', b'b') + b'\x04' + text(b'/api/v1/runs'))),
    ('an unknown pseudo field', frame(HEADERS, ONE, 1, get() + field(b':evil', b'a'))),
    ('no host', frame(HEADERS, ONE, 1, b'\x82\x86\x04' + text(b'/api/v1/status'))),
    ('another host', frame(HEADERS, ONE, 1, get(host=b'evil.example'))),
    ('another host, twice', frame(HEADERS, ONE, 1, get(host=b'evil.example') + field(b'host', b'evil.example'))),
    ('a path without a slash', frame(HEADERS, ONE, 1, get(path=b'api'))),
    ('a line end in a value', frame(HEADERS, ONE, 1, get() + field(b'x', b'a\r\nb: c'))),
    ('more than was announced', frame(HEADERS, END_HEADERS, 1, POST + field(b'content-length', b'5')) + frame(DATA, END_STREAM, 1, b'123456789')),
    ('less than was announced', frame(HEADERS, END_HEADERS, 1, POST + field(b'content-length', b'50')) + frame(DATA, END_STREAM, 1, b'1234')),
    ('a stream of the server', frame(HEADERS, ONE, 2, get())),
    ('data of no stream', frame(DATA, 0, 7, b'x')),
    ('settings of a wrong size', frame(SETTINGS, 0, 0, b'12345')),
    ('a frame that is too long', frame(DATA, 0, 1, b'x' * 20000)),
    ('a frame within a head', frame(HEADERS, END_STREAM, 1, get()) + frame(PING, 0, 0, b'12345678')),
    ('a push by the client', frame(5, END_HEADERS, 1, struct.pack('>I', 2) + get())),
    ('more padding than frame', frame(HEADERS, ONE | 8, 1, b'\xff' + get())),
    ('a length beyond 64 bits', frame(HEADERS, ONE, 1, get() + b'\0\x7f' + b'\xff' * 8 + b'\x7f')),
    ('a field that is not in the table', frame(HEADERS, ONE, 1, get() + b'\xff\xff\xff\x7f')),
    ('a wrong Huffman code', frame(HEADERS, ONE, 1, get() + b'\0\x84\xff\xff\xff\xff\x01a')),
    ('a head of a megabyte', frame(HEADERS, END_STREAM, 1, get()) + b''.join(
        frame(CONTINUATION, 0, 1, field(b'a', b'b' * 100) * 150) for _ in range(60)) + frame(CONTINUATION, END_HEADERS, 1)),
])
def test_frames_that_no_client_sends_get_a_refusal_or_an_end(served, name, frames):
    got = answered(served, frames)
    assert not [f for f in got if f[0] == HEADERS and f[2][:1] == b'\x88'], got  # 200
    assert [f for f in got if f[0] in (GOAWAY, RST) or f[0] == HEADERS], got


def test_requests_that_never_become_whole_end(slow):
    """Begun before all other tests, as they take their time."""
    for s in slow:
        while s.recv(65536):
            pass
