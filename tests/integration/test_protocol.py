"""HTTP as a client sees it: versions, TLS, conditions, compression, HEAD, Host, slow and rude clients."""
import gzip
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.parse

import daemon
import pytest

curl = pytest.mark.skipif(not shutil.which('curl'), reason='curl is not installed')


def run_curl(*args, timeout=30):
    return subprocess.run(['curl', '-sS', '--max-time', '20', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, check=True).stdout.decode('utf8', 'replace')


def raw(port, data, quiet=1.0):
    """Sends bytes as they are; everything that comes until the server closes or nothing more comes for so long."""
    out = b''
    with socket.create_connection(('127.0.0.1', port), timeout=20) as s:
        s.sendall(data)
        s.settimeout(quiet)
        try:
            while True:
                piece = s.recv(65536)
                if not piece:
                    break
                out += piece
        except (TimeoutError, ConnectionResetError):
            pass
    return out


def gunzip(reply):
    return gzip.decompress(reply.body) if reply.headers.get('content-encoding') == 'gzip' else reply.body


def url(d, path):
    return '%s://127.0.0.1:%d%s' % (d.scheme, d.port, path)


@curl
@pytest.mark.parametrize('flag,version', [('--http1.1', '1.1'), ('--http2-prior-knowledge', '2'), ('--http2', '2'), ('--http1.0', '1.1')])
def test_versions_on_one_port(sample, flag, version):
    out = run_curl(flag, '-o', '/dev/null', '-w', '%{http_version} %{http_code}', url(sample, '/api/v1/runs'))
    assert out in ('%s 200' % version, '1.0 200' if flag == '--http1.0' else None)


@pytest.mark.skipif(not shutil.which('h2load'), reason='h2load is not installed')
def test_many_streams_on_one_http2_connection(sample):
    # Not curl: 7.88.1 fails by itself on a reused connection with prior knowledge (its issue 10634).
    target = url(sample, '/api/v1/window?run=sample&host=host-0&px=200&t0=0&t1=')
    urls = [target + str(10**9 * (i + 1)) for i in range(60)]
    done = subprocess.run(['h2load', '-n', '600', '-c', '2', '-m', '60', *urls], stdout=subprocess.PIPE, timeout=60, check=True)
    assert b'600 succeeded, 0 failed, 0 errored' in done.stdout and b'600 2xx' in done.stdout, done.stdout


@pytest.mark.skipif(not shutil.which('nghttp'), reason='nghttp is not installed')
def test_http2_trace_is_whole(sample):
    path = daemon.COMPAT + '/data?run=sample&tag=trace_viewer@&hosts=host-0&resolution=8000'
    done = subprocess.run(['nghttp', '-t', '20', url(sample, path)], stdout=subprocess.PIPE, timeout=30, check=True)
    assert len(json.loads(done.stdout)['traceEvents']) > 1000


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    if not shutil.which('openssl'):
        pytest.skip('openssl is not installed')
    folder = tmp_path_factory.mktemp('tls')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost',
                    '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', str(folder / 'key.pem'),
                    '-out', str(folder / 'cert.pem')], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    return str(folder / 'cert.pem'), str(folder / 'key.pem')


@pytest.mark.parametrize('offer,got', [(['h2', 'http/1.1'], 'h2'), (['http/1.1'], 'http/1.1'), (['h2'], 'h2')])
def test_tls_with_alpn(start, sample, certificate, offer, got):
    d = start('--logdir', sample.root, '--tls-cert', certificate[0], '--tls-key', certificate[1])
    context = ssl.create_default_context(cafile=certificate[0])
    context.set_alpn_protocols(offer)
    with socket.create_connection(('127.0.0.1', d.port), timeout=10) as s:
        with context.wrap_socket(s, server_hostname='localhost') as t:
            assert t.selected_alpn_protocol() == got
            assert t.version() in ('TLSv1.2', 'TLSv1.3')
    if shutil.which('curl'):
        out = run_curl('--cacert', certificate[0], '-o', '/dev/null', '-w', '%{http_version} %{http_code}',
                       'https://localhost:%d/api/v1/runs' % d.port)
        assert out in ('2 200', '1.1 200')


def test_old_tls_is_refused(start, sample, certificate):
    d = start('--logdir', sample.root, '--tls-cert', certificate[0], '--tls-key', certificate[1])
    context = ssl._create_unverified_context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers('ALL:@SECLEVEL=0')
    with socket.create_connection(('127.0.0.1', d.port), timeout=10) as s:
        with pytest.raises((ssl.SSLError, OSError)):
            context.wrap_socket(s)
    # A client that speaks no TLS at all does no harm either.
    raw(d.port, b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert d.alive()


@pytest.mark.parametrize('path', ['/api/v1/tracks?run=sample&host=host-0', '/api/v1/runs',
                                  '/api/v1/window?run=sample&host=host-0&px=800'])
def test_an_etag_turns_into_304(sample, path):
    sample.loaded('sample')
    first = sample.get(path)
    assert first.status == 200 and first.headers.get('etag'), first
    # Whichever coding was asked first, or lies kept: one answer has one tag.
    packed = sample.get(path, {'Accept-Encoding': 'gzip'})
    assert packed.headers['etag'] == first.headers['etag'] and gunzip(packed) == first.body
    again = sample.get(path, {'If-None-Match': first.headers['etag']})
    for name in ('vary', 'cache-control'):
        assert first.headers[name] == packed.headers[name] == again.headers[name], name
    assert again.status == 304 and again.body == b'' and again.headers['etag'] == first.headers['etag']
    assert sample.get(path, {'If-None-Match': '"other"'}).status == 200
    assert sample.get(path, {'If-None-Match': '"other", ' + first.headers['etag']}).status == 304


def test_gzip_by_negotiation(sample):
    sample.loaded('sample')
    path = daemon.COMPAT + '/data?run=sample&tag=trace_viewer@&hosts=host-0&resolution=8000'
    plain = sample.get(path, {'Accept-Encoding': 'identity'})
    packed = sample.get(path, {'Accept-Encoding': 'gzip, br'})
    refused = sample.get(path, {'Accept-Encoding': 'gzip;q=0'})
    assert 'content-encoding' not in plain.headers and 'content-encoding' not in refused.headers
    assert packed.headers['content-encoding'] == 'gzip'
    assert gzip.decompress(packed.body) == plain.body == refused.body
    assert len(packed.body) < len(plain.body) / 3
    assert 'accept-encoding' in packed.headers.get('vary', '').lower()


def test_head_is_get_without_the_body(sample):
    sample.loaded('sample')
    for path in ('/api/v1/runs', '/api/v1/tracks?run=sample&host=host-0', '/', '/api/v1/run?run=nope'):
        get, head = sample.get(path), sample.request('HEAD', path)
        assert head.body == b'' and head.status == get.status
        assert head.headers.get('content-length') in (None, str(len(get.body)))
    # The connection stays usable: a pipelined request behind a HEAD gets its own answer.
    host = b'Host: localhost\r\n'
    out = raw(sample.port, b'HEAD /api/v1/runs HTTP/1.1\r\n' + host + b'\r\nGET /api/v1/status HTTP/1.1\r\n' + host +
              b'Connection: close\r\n\r\n', quiet=20)
    assert out.count(b'HTTP/1.1 200') == 2 and out.rstrip().endswith(b'}')


@pytest.mark.parametrize('host,status', [('localhost', 200), ('localhost:8791', 200), ('127.0.0.1', 200), ('127.9.9.9:1', 200),
                                         ('[::1]:8791', 200), ('a.localhost', 200), ('evil.example', 421),
                                         ('127.0.0.1.evil.example', 421), ('localhost.evil.example', 421), ('10.0.0.1', 421),
                                         ('evil.example:127', 421), ('', 400)])
def test_the_host_header_keeps_rebinding_out(sample, host, status):
    for path in ('/', '/api/v1/runs', daemon.COMPAT + '/runs', '/data/plugin/profile/data?run=sample&tag=trace_viewer@'):
        r = sample.get(path, {'Host': host})
        if status == 200:
            assert r.status < 400, r
        else:
            assert r.status in (status, 421) and b'sample' not in r.body.replace(host.encode() or b'-', b''), r
    if status == 421:
        daemon.sentence(sample.get('/api/v1/runs', {'Host': host}), 421, 'wrong_host')


def test_a_further_host_name_is_accepted_by_flag(start, sample):
    d = start('--logdir', sample.root, '--allow-host', 'profiles.example')
    assert d.get('/api/v1/runs', {'Host': 'profiles.example'}).status == 200
    assert d.get('/api/v1/runs', {'Host': 'other.example'}).status == 421


def test_pages_carry_a_strict_policy(sample):
    path, r = '/', sample.get('/')
    for _ in range(3):
        if r.status in (301, 302, 303, 307, 308):
            path = urllib.parse.urljoin(path, r.headers['location'])
            r = sample.get(path)
    assert r.status == 200 and r.type.startswith('text/html'), (path, r)
    policy = r.headers['content-security-policy']
    assert "default-src 'none'" in policy or "default-src 'self'" in policy
    assert 'unsafe-eval' not in policy and "script-src 'unsafe-inline'" not in policy
    assert r.headers['x-content-type-options'] == 'nosniff'


@pytest.mark.parametrize('data', [b'\0' * 100, b'GET\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n', b'GET http://evil/ HTTP/1.1\r\nHost: evil\r\n\r\n',
                                  b'GET * HTTP/1.1\r\nHost: localhost\r\n\r\n', b'GET / HTTP/1.1\r\n' + b'A: b\r\n' * 300 + b'\r\n',
                                  b'GET /\xff%zz HTTP/1.1\r\nHost: localhost\r\n\r\n', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\xff' * 200,
                                  b'GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n',
                                  b'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n',
                                  b'GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'], ids=lambda b: repr(b)[:40])
def test_broken_requests_do_no_harm(sample, data):
    out = raw(sample.port, data)
    assert b'sample' not in out
    assert sample.alive() and sample.api('status').status == 200


def test_a_client_that_goes_away_is_forgotten(sample):
    path = daemon.COMPAT + '/data?run=sample&tag=trace_viewer@&hosts=host-0&resolution=0'
    for _ in range(30):
        with socket.create_connection(('127.0.0.1', sample.port), timeout=5) as s:
            s.sendall(('GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n' % path).encode())
    assert sample.api('status').status == 200


def test_a_slow_reader_gets_everything(sample):
    path = daemon.COMPAT + '/data?run=sample&tag=trace_viewer@&hosts=host-0&resolution=0'
    want = len(sample.get(path).body)
    got = b''
    with socket.create_connection(('127.0.0.1', sample.port), timeout=20) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.sendall(('GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' % path).encode())
        for i in range(100000):
            piece = s.recv(32768)
            if not piece:
                break
            got += piece
            if i < 20:
                time.sleep(0.02)
    body = got.split(b'\r\n\r\n', 1)[1]
    assert len(body) >= want


def test_shutting_down_does_not_cut_an_answer(start, sample):
    d = start('--logdir', sample.root)
    d.loaded('sample')
    path = daemon.COMPAT + '/data?run=sample&tag=trace_viewer@&hosts=host-0&resolution=0'
    want = d.get(path).body
    got = b''
    with socket.create_connection(('127.0.0.1', d.port), timeout=20) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.sendall(('GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' % path).encode())
        got += s.recv(4096)
        d.proc.terminate()
        time.sleep(0.3)
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
    assert len(got.split(b'\r\n\r\n', 1)[1]) >= len(want)
    assert d.proc.wait(20) == 0


def test_tls_clients_that_leave_without_a_farewell_leave_nothing_behind(start, sample, certificate):
    d = start('--logdir', sample.root, '--tls-cert', certificate[0], '--tls-key', certificate[1])
    context = ssl._create_unverified_context()
    context.set_alpn_protocols(['h2', 'http/1.1'])
    base = len(os.listdir('/proc/%d/fd' % d.pid))
    for _ in range(100):
        # A TLS 1.3 client that closes before it read the tickets resets the connection.
        with socket.create_connection(('127.0.0.1', d.port), timeout=10) as s:
            with context.wrap_socket(s):
                pass
    end = time.monotonic() + 15
    while len(os.listdir('/proc/%d/fd' % d.pid)) > base + 2:
        assert time.monotonic() < end, sorted(os.listdir('/proc/%d/fd' % d.pid))
        time.sleep(0.2)
    began = time.monotonic()
    with socket.create_connection(('127.0.0.1', d.port), timeout=10) as s:
        with context.wrap_socket(s):
            pass
    assert d.stop() == 0
    assert time.monotonic() - began < 9  # after ten seconds it would be cut
