"""What frontends and shards of other versions say to each other while an installation is upgraded."""
import socket

import pytest

import daemon

ASK, HELLO = '/rpc/v1/ask', '/rpc/v1/hello'


def varint(n):
    out = b''
    while n >= 0x80:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


def text(number, value):
    value = value if isinstance(value, bytes) else value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def number(number_, value):
    return varint(number_ << 3) + varint(value)


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    path = tmp_path_factory.mktemp('versions')
    daemon.generate(path, 'run', '--steps', '2')
    return path


@pytest.fixture(scope='module')
def shard(root):
    d = daemon.Daemon('shard', '--logdir', root)
    yield d
    d.stop()


def ask(root, op, tool='', more=b'', more_of_object=b''):
    """As the first version wrote it; `more` are fields of others."""
    with open(daemon.profile(root, 'run'), 'rb') as f:
        size = f.seek(0, 2)
    o = text(1, str(root)) + text(2, 'plugins/profile/run/host-0.xplane.pb') + text(3, 'host-0') + number(5, size)
    return text(1, op) + text(2, tool) + text(3, o + more_of_object) + text(4, text(1, 'wait') + text(2, 'all')) + more


def test_a_shard_on_any_port_is_named_by_the_one_it_got(shard):
    name = shard.get(HELLO).text().split('\n')[0]
    assert name == '%s:%d' % (socket.gethostname(), shard.port)


@pytest.mark.parametrize('said', [{}, {'xprofd-rpc': '1.0'}, {'xprofd-rpc': '1.1'}, {'xprofd-rpc': '1.99'}])
def test_asks_of_an_older_and_a_newer_minor_version_are_answered_alike(shard, root, said):
    newer = number(900, 7) + text(901, 'what this version does not know')
    old = shard.request('POST', ASK, said, ask(root, 'tracks'))
    new = shard.request('POST', ASK, said, ask(root, 'tracks', more=newer, more_of_object=newer))
    assert old.status == new.status == 200
    assert old.headers['xprofd-status'] == new.headers['xprofd-status'] == 'ok', (old, new)
    assert old.body == new.body and b'"planes"' in old.body


@pytest.mark.parametrize('method, path, said', [
    ('POST', '/rpc/v2/ask', {}), ('GET', '/rpc/v2/hello', {}), ('POST', ASK, {'xprofd-rpc': '2.0'}),
    ('GET', HELLO, {'xprofd-rpc': '2.0'}), ('POST', ASK, {'xprofd-rpc': 'x'}), ('POST', ASK, {'xprofd-rpc': '11.0'})])
def test_another_major_version_is_refused_with_a_sentence(shard, root, method, path, said):
    r = shard.request(method, path, said, ask(root, 'tracks') if method == 'POST' else None)
    assert r.status == 501
    assert 'version 1.' in r.text() and len(r.text()) > 40


def test_an_operation_of_a_newer_version_is_refused_with_a_sentence(shard, root):
    r = shard.request('POST', ASK, body=ask(root, 'tomorrow'))
    assert (r.status, r.headers['xprofd-status']) == (200, 'bad_request')
    assert 'tomorrow' in r.text()


def test_partials_are_only_given_to_the_same_build(shard, root):
    build = [line[6:] for line in shard.get(HELLO).text().split('\n') if line.startswith('build ')][0]
    assert len(build) >= 16
    for said, status in ((build, 'ok'), ('', 'busy'), ('0' * 40, 'busy')):
        r = shard.request('POST', ASK, body=ask(root, 'map', 'overview_page', more=text(8, said)))
        assert (r.status, r.headers['xprofd-status']) == (200, status), r
    r = shard.request('POST', ASK, body=ask(root, 'map', 'trace_viewer', more=text(8, build)))
    assert r.headers['xprofd-status'] == 'bad_request', r  # a tool without partials


def test_owners_that_nobody_is_are_this_shard(shard, root):
    wrong = number(7, 77) + number(8, 99)
    peers = text(6, text(1, 'nobody') + text(2, '127.0.0.1:1'))
    r = shard.request('POST', ASK, body=ask(root, 'report', 'overview_page', more=peers, more_of_object=wrong))
    assert (r.status, r.headers['xprofd-status']) == (200, 'ok'), r
