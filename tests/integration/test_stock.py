"""`--ui stock=DIR`: XProf's own pages from an installed static folder, beside ours; a made-up folder here."""
import gzip
import os
import socket

import daemon
import pytest

FILES = {
    'index.html': 'text/html',
    'index.js': 'application/javascript',
    'bundle.js': 'application/javascript',
    'runtime.js': 'application/javascript',
    'zone.js': 'application/javascript',
    'styles.css': 'text/css',
    'trace_viewer_index.html': 'text/html',
    'trace_viewer_index.js': 'application/javascript',
    'trace_viewer_v2.js': 'application/javascript',
    'trace_viewer_v2.wasm': 'application/wasm',
    'materialicons.woff2': 'application/octet-stream',
    'material_symbols_outlined.woff2': 'application/octet-stream',
}
PAGES = ['/', '/index.html', '/local', '/data/plugin/profile', '/data/plugin/profile/', '/data/plugin/profile/overview_page',
         '/data/plugin/profile/trace_viewer@']
WIDE = ["'unsafe-eval'", 'https://www.gstatic.com']


def content(name):
    return (name + ' of XProf ' + 'x' * 2000).encode()


@pytest.fixture(scope='module')
def static(tmp_path_factory):
    folder = tmp_path_factory.mktemp('static')
    for name in FILES:
        (folder / name).write_bytes(content(name))
    (folder / 'secret.txt').write_text('not one of the pages')
    (folder.parent / 'outside.txt').write_text('outside the folder')
    return folder


@pytest.fixture(scope='module')
def server(static, make, tmp_path_factory):
    root = make('sample', '--steps', '2', root=tmp_path_factory.mktemp('logs'))
    d = daemon.Daemon('--logdir', root, '--ui', 'stock=%s' % static)
    yield d
    alive = d.alive()
    d.stop()
    assert alive, ''.join(d.lines[-20:])


def policy(reply):
    return reply.headers.get('content-security-policy', '')


def is_stock(reply, name):
    assert reply.status == 200, reply
    assert reply.type == FILES[name], reply
    body = gzip.decompress(reply.body) if reply.headers.get('content-encoding') == 'gzip' else reply.body
    assert body == content(name)
    assert all(w in policy(reply) for w in WIDE), policy(reply)
    assert reply.headers['x-content-type-options'] == 'nosniff'


@pytest.mark.parametrize('name', FILES)
@pytest.mark.parametrize('prefix', ['/', '/data/plugin/profile/'])
def test_a_file_has_its_type_and_policy(server, prefix, name):
    is_stock(server.get(prefix + name), name)


@pytest.mark.parametrize('path', PAGES)
def test_a_page_can_be_loaded_at_every_address_of_its_views(server, path):
    is_stock(server.get(path), 'index.html')
    is_stock(server.get(path + '?run=sample&tag=overview_page'), 'index.html')


def test_it_travels_compressed_and_only_when_that_is_taken(server):
    packed = server.get('/bundle.js', {'Accept-Encoding': 'gzip'})
    plain = server.get('/bundle.js')
    assert packed.headers['content-encoding'] == 'gzip' and len(packed.body) < 500
    assert 'content-encoding' not in plain.headers and plain.body == content('bundle.js')


def test_a_browser_that_has_it_is_told_so(server):
    first = server.get('/bundle.js')
    tag = first.headers['etag']
    again = server.get('/bundle.js', {'If-None-Match': tag})
    assert again.status == 304 and again.body == b''
    assert server.get('/zone.js').headers['etag'] != tag


def test_head_says_the_same_without_a_body(server):
    r = server.request('HEAD', '/')
    assert r.status == 200 and r.type == 'text/html' and r.body == b''


def test_a_page_is_only_read(server):
    assert server.request('POST', '/index.html').status in (404, 405)


# --- ours beside it ---


def test_our_pages_stay_and_stay_strict(server):
    page = server.get('/p/local/')
    assert page.status == 200 and b'of XProf' not in page.body
    assert policy(page) and 'unsafe-eval' not in policy(page) and 'gstatic' not in policy(page)
    for path in ('/p/local/trace?run=sample', '/p/local/index.html', '/p/local/bundle.js', '/p/local/local'):
        r = server.get(path)
        assert b'of XProf' not in r.body and 'gstatic' not in policy(r), path


@pytest.mark.parametrize('path', ['/runs', '/data/plugin/profile/runs', '/data/plugin/profile/config', '/version',
                                  '/data/plugin/profile/run_tools?run=sample', '/api/v1/status', '/p/local/api/v1/status',
                                  '/p/local/data/plugin/profile/runs'])
def test_routes_are_no_pages(server, path):
    r = server.get(path)
    assert r.status == 200 and b'of XProf' not in r.body
    assert 'unsafe-eval' not in policy(r) and 'gstatic' not in policy(r)


@pytest.mark.parametrize('path', ['/no_such_path', '/favicon.ico', '/secret.txt', '/data/plugin/profile/no_such.file',
                                  '/data/plugin/profile/secret.txt', '/data/plugin/profile/a/b.c', '/p/other/'])
def test_all_else_is_not_found_and_without_the_policy(server, path):
    r = server.get(path)
    assert r.status == 404 and 'gstatic' not in policy(r)


@pytest.mark.parametrize('path', [
    '/../outside.txt', '/%2e%2e/outside.txt', '/..%2foutside.txt', '/data/plugin/profile/../outside.txt',
    '/data/plugin/profile/..%2f..%2foutside.txt', '//etc/passwd', '/etc/passwd', '/./secret.txt', '/index.html%00.txt',
    '/index.html/', '/INDEX.HTML', '/index.html\\..\\secret.txt', '/bundle.js/../secret.txt'])
def test_a_tricky_path_shows_nothing_else(server, path):
    """Sent as it stands: a client library would tidy it up."""
    with socket.create_connection(('127.0.0.1', server.port), 10) as s:
        s.sendall(('GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' % path).encode('latin1'))
        got = b''
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
    status = int(got.split()[1])
    assert b'outside the folder' not in got and b'not one of the pages' not in got and b'root:' not in got
    assert status in (301, 302, 307, 308, 400, 404) or (status == 200 and b'index.html of XProf' in got), got[:300]


# --- the flag ---


def test_without_the_flag_there_are_only_our_pages(sample):
    r = sample.get('/')
    assert r.status in (301, 302, 307, 308) and r.headers['location'].endswith('p/local/')
    for path in ('/bundle.js', '/local', '/data/plugin/profile/'):
        assert sample.get(path).status == 404, path


@pytest.mark.parametrize('flag,words', [
    ('stock=%s/nowhere', ['nowhere', 'not a directory']),
    ('stock=%s/empty', ['index.html', 'xprof/static']),
    ('stock=%s/file', ['not a directory']),
    ('stock=', ['stock=']),
    ('react=%s', ['stock=DIR']),
])
def test_a_folder_that_is_none_is_named_and_ends_with_2(tmp_path, flag, words):
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'file').write_text('x')
    flag = flag % tmp_path if '%s' in flag else flag
    code, out, err = daemon.run_to_end('--logdir', tmp_path, '--port', '0', '--ui', flag)
    assert code == 2 and all(w in out + err for w in words), (code, out, err)


def test_a_file_that_is_missing_is_not_found(start, tmp_path):
    (tmp_path / 'index.html').write_bytes(content('index.html'))
    os.mkfifo(tmp_path / 'bundle.js')
    os.mkdir(tmp_path / 'zone.js')
    d = start('--logdir', tmp_path, '--ui', 'stock=%s' % tmp_path)
    is_stock(d.get('/'), 'index.html')
    for name in ('styles.css', 'bundle.js', 'zone.js'):
        assert d.get('/' + name).status == 404, name
