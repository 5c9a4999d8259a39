"""Files that are brought by upload: in pieces, bounded, private, and gone in the end."""
import gzip
import json
import os
import signal

import pytest

import daemon
import riegeli

LIMIT = 3_000_000
PIECE = 1 << 20
OURS = {'x-xprofd': '1', 'content-type': 'application/octet-stream'}


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    return tmp_path_factory.mktemp('uploads')


def serve(root, temporary):
    temporary.mkdir()
    d = daemon.Daemon('--logdir', root, '--upload-limit', LIMIT, env=dict(os.environ, TMPDIR=str(temporary)))
    d.root, d.temporary = root, temporary
    return d


@pytest.fixture(scope='module')
def server(place):
    daemon.generate(place / 'logs', 'sample', '--steps', '24')
    d = serve(place / 'logs', place / 'tmp')
    yield d
    d.stop()


def begin(server, name, size, headers=None, base='/api/v1/'):
    return server.request('POST', base + 'uploads', dict({'content-type': 'application/json'}, **headers or {}),
                          json.dumps({'name': name, 'bytes': size}))


def piece(server, run, at, body, headers=OURS, base='/api/v1/'):
    return server.request('POST', base + 'upload_piece?' + daemon.query(run=run, at=at), headers, body)


def drop(server, run, headers=OURS, base='/api/v1/'):
    return server.request('DELETE', base + 'uploads?' + daemon.query(run=run), headers)


def bring(server, name, content, **kw):
    """The answer to the last piece."""
    r = begin(server, name, len(content), **kw)
    assert r.status == 201, r
    assert r.json()['piece_bytes'] == PIECE
    for at in range(0, len(content), PIECE):
        last = piece(server, r.json()['run'], at, content[at:at + PIECE], **kw)
        if last.status != 200:
            break
    return last


@pytest.fixture(scope='module')
def profile(server):
    with open(daemon.profile(server.root, 'sample'), 'rb') as f:
        return f.read()


def kept(server):
    return [f for _, _, files in os.walk(server.temporary) for f in files]


def records(body):
    w = riegeli.Writer()
    w.records([body])
    return bytes(w.bytes)


@pytest.mark.parametrize('name, pack', [('host-0.xplane.pb', bytes), ('host-0.xplane.pb.gz', gzip.compress),
                                        ('host-0.xplane.riegeli', records)])
def test_an_upload_answers_as_the_same_file_in_the_log_directory(server, profile, name, pack):
    before = sorted(str(p) for p in server.root.rglob('*'))
    done = bring(server, name, pack(profile))
    run = done.json()['run']
    info = server.api('run', run=run).json()
    assert [h['host'] for h in info['hosts']] == ['host-0']
    assert info['expires_ms'] > done.json()['expires_ms'] - 60_000
    server.loaded(run)
    for what in (dict(tool='overview_page'), dict(tool='hlo_stats')):
        mine, theirs = (server.api('report', run=r, **what).json() for r in (run, 'sample'))
        assert mine['tables'] == theirs['tables'] and mine['metrics'] == theirs['metrics']
    for what in (dict(what='run_tools'), dict(what='module_list'), dict(what='hosts', tag='overview_page'), dict(what='data', tag='overview_page'),
                 dict(what='data_csv', tag='hlo_stats')):
        mine, theirs = (server.compat(run=r, **what) for r in (run, 'sample'))
        assert (mine.status, mine.body) == (theirs.status, theirs.body) == (200, mine.body), what
    assert run not in server.compat('runs').text()
    assert run not in server.api('runs').text() and server.api('runs', q='upload').json()['runs'] == []
    assert sorted(str(p) for p in server.root.rglob('*')) == before
    assert drop(server, run).status == 204
    daemon.sentence(server.api('run', run=run), 404, 'not_found', 'any more')
    assert server.compat('run_tools', run=run).json() == [] and server.compat('data', run=run, tag='overview_page').status == 404
    assert kept(server) == []


def test_other_runs_do_not_expire(server):
    assert server.api('run', run='sample').json()['expires_ms'] is None


def test_more_than_may_be_is_refused_before_a_byte_is_sent(server):
    daemon.sentence(begin(server, 'x', LIMIT + 1), 413, 'too_large', '--upload-limit')
    made = [begin(server, 'x', LIMIT).json()['run'] for _ in range(4)]
    daemon.sentence(begin(server, 'x', LIMIT), 503, 'busy', 'remove one')
    run = made[0]
    daemon.sentence(piece(server, run, 0, b'\n' * (PIECE + 1)), 413, 'too_large', '')
    daemon.sentence(piece(server, run, LIMIT - 1, b'\n\n'), 400, 'bad_request', 'behind')
    daemon.sentence(piece(server, run, 7, b'\n'), 400, 'bad_request', 'byte 0')
    for at in ('', '-1', 'x', '99999999999999999999999'):
        daemon.sentence(piece(server, run, at, b'\n'), 400, 'bad_request', 'at')
    assert [drop(server, r).status for r in made] == [204] * 4
    assert kept(server) == []


@pytest.mark.parametrize('content, words', [
    (b'{"traceEvents":[]}', 'JSON'), (b'PK\3\4', 'ZIP'), (b'<!doctype html>', 'a page'), (b'\x1f\x8b\x08' + bytes(40), 'gzip'),
    (gzip.compress(b'[1,2,3]'), 'JSON')])
def test_what_is_no_profile_is_said_at_once(server, content, words):
    r = bring(server, 'x.xplane.pb', content)
    daemon.sentence(r, 422, 'corrupt_profile', words)
    assert kept(server) == []


def test_a_file_that_ends_early_opens_and_says_where(server, profile):
    run = bring(server, 'cut.xplane.pb', profile[:len(profile) * 2 // 3]).json()['run']
    tracks = server.loaded(run, host='cut').json()
    assert tracks['partial'] and tracks['damage']['detail']
    assert drop(server, run).status == 204


@pytest.mark.parametrize('name, host', [('../../../etc/cron.d/x', 'x'), ('..', 'profile'), ('C:\\a\\b.xplane.pb', 'b'),
                                        ('<img src=x onerror=alert(1)>.xplane.pb', '<img src=x onerror=alert(1)>'),
                                        ('a\0b\n.xplane.pb', 'a_b_'), ('日本.xplane.pb.gz', '日本'), ('x' * 5000, None)])
def test_a_name_leads_nowhere(server, profile, name, host):
    run = bring(server, name, profile[:5000]).json()['run']
    got = server.api('run', run=run).json()['hosts'][0]['host']
    assert got == host or (host is None and 0 < len(got) < 200)
    assert len(kept(server)) == 1
    assert drop(server, run).status == 204


def test_names_of_runs_are_looked_up_and_never_paths(server):
    for run in ('', 'upload-' + '0' * 32, 'upload-../sample', 'upload-' + 'A' * 32, '../' * 5 + 'etc', b'upload-\0' + b'0' * 31):
        assert piece(server, run, 0, b'\n').status == 404
        assert drop(server, run).status == 404
        assert server.api('run', run=run).status in (400, 404)
    for body in ('', '[]', '{}', '{"name":1,"bytes":2}', '{"name":"x","bytes":-1}', '{"name":"x","bytes":1.5}', '{"name":"x"'):
        r = server.request('POST', '/api/v1/uploads', {'content-type': 'application/json'}, body)
        daemon.sentence(r, 400, 'bad_request', 'name')


def test_other_sites_upload_nothing(server):
    assert begin(server, 'x', 10, {'content-type': 'text/plain'}).status == 403
    assert begin(server, 'x', 10, {'origin': 'https://evil.example'}).status == 403
    run = begin(server, 'x', 10).json()['run']
    assert piece(server, run, 0, b'\n', headers={'content-type': 'application/octet-stream'}).status == 403
    assert piece(server, run, 0, b'\n', headers=dict(OURS, **{'sec-fetch-site': 'cross-site'})).status == 403
    assert server.get('/api/v1/uploads').status == 405
    assert drop(server, run).status == 204


def test_off_is_off_and_a_frontend_says_why_not(place, start):
    off = start('--logdir', place / 'logs', '--upload-limit', '0')
    daemon.sentence(begin(off, 'x', 10), 403, 'denied', '--upload-limit 0')
    front = start('frontend', '--logdir', place / 'logs', '--shards', 'static:s=127.0.0.1:1')
    daemon.sentence(begin(front, 'x', 10), 403, 'denied', 'frontends keep nothing')


def test_nothing_is_left_when_the_server_ends(place, profile, tmp_path):
    d = serve(place / 'logs', tmp_path / 'tmp')
    assert bring(d, 'host-0.xplane.pb', profile).status == 200
    assert len(kept(d)) == 1
    assert d.stop(signal.SIGTERM) == 0
    assert list(d.temporary.iterdir()) == []
