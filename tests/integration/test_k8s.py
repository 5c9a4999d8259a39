"""Members from Kubernetes: a fake API server that lists and lets watch EndpointSlices, over TLS, to who has the token."""
import http.server
import json
import os
import queue
import ssl
import subprocess
import threading
import time

import pytest

import daemon

TOKEN = 'token-of-the-pod'
PATH = '/apis/discovery.k8s.io/v1/namespaces/perf/endpointslices'


def endpoint_slice(name, *addresses, ready=True):
    return {'metadata': {'name': name, 'resourceVersion': '7'},
            'endpoints': [{'addresses': [a], 'conditions': {'ready': ready}} for a in addresses]}


class Api:
    """`slices` is what a list says; what is put into `events` goes to the watch. For several that watch: `change`."""

    def __init__(self, cert, key):
        self.slices, self.events, self.lists, self.watches, self.token, self.bad = [], queue.Queue(), 0, [], TOKEN, []
        self.many, self.version, self.watchers = False, 0, []
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                path, _, query = self.path.partition('?')
                if path != PATH or 'labelSelector=kubernetes.io%2Fservice-name%3Dshards' not in query:
                    api.bad.append(self.path)
                if self.headers.get('authorization') != 'Bearer ' + api.token:
                    self.send_response(401)
                    self.send_header('content-length', '0')
                    self.end_headers()
                elif 'watch=1' in query:
                    self.watch(query)
                else:
                    api.lists += 1
                    version = str(api.version if api.many else 100 * api.lists)
                    body = json.dumps({'metadata': {'resourceVersion': version}, 'items': api.slices}).encode()
                    self.send_response(200)
                    self.send_header('content-length', str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def watch(self, query):
                api.watches.append(query)
                self.send_response(200)
                self.send_header('transfer-encoding', 'chunked')
                self.end_headers()
                events = api.events
                if api.many:
                    events = queue.Queue()
                    api.watchers.append(events)
                    if not query.endswith('resourceVersion=%d' % api.version):  # it changed since the list
                        api.expire(events)
                while True:
                    event = events.get()
                    line = json.dumps(event).encode() + b'\n' if event else b''
                    for piece in (line[:20], line[20:]) if line else (b'',):  # lines need not come whole
                        self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
                        self.wfile.flush()
                    if not event:
                        return

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def expire(self, events):
        events.put({'type': 'ERROR', 'object': {'kind': 'Status', 'code': 410}})
        events.put(None)

    def change(self, *slices):
        """Tells all that watch, who list again."""
        self.many, self.slices, self.version, watchers = True, slices, self.version + 1, self.watchers
        self.watchers = []
        for w in watchers:
            self.expire(w)

    def stop(self):
        for w in self.watchers + [self.events]:
            w.put(None)
        self.server.shutdown()
        self.server.server_close()


def certificate(folder, name):
    cert, key = os.path.join(folder, name + '.crt'), os.path.join(folder, name + '.key')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                    '-days', '2', '-subj', '/CN=kubernetes', '-addext', 'subjectAltName=IP:127.0.0.1', '-out', cert,
                    '-keyout', key], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    return cert, key


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """(root, folder of the account, API server, port of the shards), two shards at two addresses."""
    root, account = tmp_path_factory.mktemp('root'), str(tmp_path_factory.mktemp('account'))
    daemon.generate(root, 'run', '--steps', '2')
    cert, key = certificate(account, 'server')
    os.rename(cert, os.path.join(account, 'ca.crt'))
    for name, text in (('token', TOKEN + '\n'), ('namespace', 'perf')):
        with open(os.path.join(account, name), 'w', encoding='utf8') as f:
            f.write(text)
    api = Api(os.path.join(account, 'ca.crt'), key)
    one = daemon.Daemon('shard', '--logdir', root, '--host', '127.0.0.1', '--identity', 'pod-0')
    two = daemon.Daemon('shard', '--logdir', root, '--host', '127.0.0.2', '--identity', 'pod-1', port=one.port)
    yield root, account, api, one.port
    for d in (one, two):
        d.stop()
    api.stop()


def frontend(world, account=None):
    root, folder, api, port = world
    env = dict(os.environ, KUBERNETES_SERVICE_HOST='127.0.0.1', KUBERNETES_SERVICE_PORT=str(api.port),
               XPROFD_SERVICEACCOUNT=account or folder)
    return daemon.Daemon('frontend', '--logdir', root, '--shards', 'k8s:shards:%d' % port, env=env)


def members(d):
    return d.api('status').json()['shards']


def wait_for(what, limit=15):
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_members_are_the_ready_endpoints_as_they_come_and_go(world):
    api = world[2]
    api.slices = [endpoint_slice('shards-a', '127.0.0.1'), endpoint_slice('shards-b', '127.0.0.2', ready=False)]
    d = frontend(world)
    try:
        wait_for(lambda: members(d) == 1 and api.watches)
        assert 'resourceVersion=100' in api.watches[-1]
        assert d.api('tracks', run='run', host='host-0').status == 200
        api.events.put({'type': 'MODIFIED', 'object': endpoint_slice('shards-b', '127.0.0.2')})
        wait_for(lambda: members(d) == 2)
        api.events.put({'type': 'BOOKMARK', 'object': {'metadata': {'resourceVersion': '190'}}})
        api.events.put({'type': 'DELETED', 'object': endpoint_slice('shards-a', '127.0.0.1')})
        wait_for(lambda: members(d) == 1)
        # The server ends a watch now and then: another goes on from there, without a list.
        lists, watches = api.lists, len(api.watches)
        api.events.put({'type': 'BOOKMARK', 'object': {'metadata': {'resourceVersion': '190'}}})
        api.events.put(None)
        wait_for(lambda: len(api.watches) > watches)
        assert api.lists == lists and 'resourceVersion=190' in api.watches[-1]
        # It has forgotten that place: all is listed again.
        api.slices = [endpoint_slice('shards-c', '127.0.0.1', '127.0.0.2', '127.0.0.3')]  # nobody is at .3
        api.events.put({'type': 'ERROR', 'object': {'kind': 'Status', 'code': 410}})
        api.events.put(None)
        wait_for(lambda: api.lists > lists and members(d) == 2)
        assert d.api('tracks', run='run', host='host-0').status == 200
        # It is away, or wants another token: those that were known stay.
        api.token, watches = 'another', len(api.watches)
        api.events.put(None)
        time.sleep(1)
        assert members(d) == 2 and d.api('tracks', run='run', host='host-0').status == 200
        with open(os.path.join(world[1], 'token'), 'w', encoding='utf8') as f:
            f.write('another')  # which is read again
        wait_for(lambda: len(api.watches) > watches)
        assert members(d) == 2
        assert not api.bad
    finally:
        assert d.stop() == 0


def test_an_api_server_of_another_ca_is_not_believed(world, tmp_path):
    certificate(str(tmp_path), 'ca')
    with open(tmp_path / 'token', 'w', encoding='utf8') as f:
        f.write('another')
    world[2].slices, lists = [endpoint_slice('shards-a', '127.0.0.1')], world[2].lists
    d = frontend(world, str(tmp_path))
    try:
        wait_for(lambda: any('DNS' in line for line in d.lines))
        assert members(d) == 0 and world[2].lists == lists
        assert 'another' not in ''.join(d.lines)
    finally:
        assert d.stop() == 0


@pytest.mark.parametrize('spec, word', [('k8s:', 'k8s:'), ('k8s:a/b/c', 'k8s:'), ('k8s:Shards', 'k8s:'), ('k8s:s:0', 'k8s:'),
                                        ('k8s:shards', 'KUBERNETES_SERVICE_HOST')])
def test_a_spec_that_is_none_is_named(spec, word):
    code, _, err = daemon.run_to_end('frontend', '--logdir', '.', '--shards', spec)
    assert code == 2 and word in err, err
