"""The access log, request ids, trace context, spans."""
import http.server
import json
import re
import threading
import time

import pytest

import daemon

TRACE, PARENT = '4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'
SAMPLED = '00-%s-%s-01' % (TRACE, PARENT)


@pytest.fixture(scope='module')
def logs(tmp_path_factory):
    root = tmp_path_factory.mktemp('access')
    daemon.generate(root, 'sample', '--steps', '2')
    return root


@pytest.fixture
def collector():
    """What spans were sent: [(span, resource's attributes)]"""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            assert self.path == '/v1/traces' and self.headers['content-type'] == 'application/json'
            body = json.loads(self.rfile.read(int(self.headers['content-length'])))
            for r in body['resourceSpans']:
                about = {a['key']: a['value']['stringValue'] for a in r['resource']['attributes']}
                got.extend((s, about) for scope in r['scopeSpans'] for s in scope['spans'])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{}')

        def log_message(self, *args):
            pass
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield 'http://127.0.0.1:%d' % server.server_port, got
    server.shutdown()


def lines(path, n):
    end = time.monotonic() + 20
    while True:
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        if len(found) >= n:
            return found
        assert time.monotonic() < end, found
        time.sleep(0.05)


def test_each_request_is_a_line_of_the_log(start, logs, tmp_path):
    log = tmp_path / 'access.log'
    d = start('--logdir', logs, '--access-log', log)
    d.api('run', run='sample')
    d.get('/p/local/')
    d.get('/p/local/link-1secret?x=y')
    d.get('/no/such/"page"\n'.replace('\n', '%0a'), {'x-request-id': 'mine-1.2_3'})
    d.api('run', run='none')
    # A line is written when the answer has been sent: clients may ask again before.
    found = lines(log, 5)
    one, page, link, none, missing = (next(x for x in found if (x['path'], x.get('query')) == of) for of in (
        ('/api/v1/run', 'run=sample'), ('/p/local/', None), ('/p/local/link-', None), ('/no/such/"page"\n', None),
        ('/api/v1/run', 'run=none')))
    assert one['method'] == 'GET'
    assert one['status'] == 200 and one['bytes'] > 100 and one['ms'] > 0 and not one['aborted']
    assert one['route'] == 'api/run' and one['who'] == 'local' and one['http'] == '1.1'
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', one['time'])
    assert one['id'] == one['trace'] and len(one['id']) == 32
    assert page['status'] == 200 and 'route' not in page
    assert none['id'] == 'mine-1.2_3' and none['status'] == 404 and link['status'] == 404
    assert missing['status'] == 404 and missing['route'] == 'api/run'


def test_request_id_is_the_clients_where_it_is_a_plain_word(start, logs):
    d = start('--logdir', logs)
    assert d.api('run', {'x-request-id': 'abc-1'}, run='sample').headers['x-request-id'] == 'abc-1'
    ids = [d.api('run', {'x-request-id': bad}, run='sample').headers['x-request-id']
           for bad in ('', 'a b', 'x' * 65, '<script>', 'ä')]
    assert len(set(ids)) == len(ids) and all(re.fullmatch('[0-9a-f]{32}', i) for i in ids)


def test_trace_context_that_is_malformed_begins_a_new_trace(start, logs):
    d = start('--logdir', logs)
    good = (SAMPLED, '00-%s-%s-00' % (TRACE, PARENT), '01-%s-%s-01-more' % (TRACE, PARENT))
    bad = ('', 'x', SAMPLED[:-1], SAMPLED + '-x', 'ff' + SAMPLED[2:], SAMPLED.upper(), SAMPLED.replace(TRACE, '0' * 32),
           SAMPLED.replace(PARENT, '0' * 16), SAMPLED.replace('-', '_'))
    for header in good:
        assert d.api('run', {'traceparent': header}, run='sample').headers['x-request-id'] == TRACE, header
    for header in bad:
        assert d.api('run', {'traceparent': header}, run='sample').headers['x-request-id'] != TRACE, header


def test_spans_of_a_frontend_and_its_shard_are_one_trace(start, logs, collector, tmp_path):
    endpoint, got = collector
    (tmp_path / 'key').write_text('0123456789abcdef0123\n')
    more = ('--rpc-key', tmp_path / 'key', '--otlp-endpoint', endpoint, '--trace-percent', '0')
    shard = start('shard', '--logdir', logs, '--port', '0', *more)
    front = start('frontend', '--logdir', logs, '--shards', 'static:127.0.0.1:%d' % shard.port, *more)
    assert front.api('run', {'traceparent': '00-%s-%s-00' % (TRACE, PARENT)}, run='sample').status == 200
    assert front.api('tracks', {'traceparent': SAMPLED}, run='sample').status == 200
    end = time.monotonic() + 30
    while len(got) < 2:
        assert time.monotonic() < end, got
        time.sleep(0.05)
    by_role = {about['xprofd.role']: span for span, about in got}
    above, below = by_role['frontend'], by_role['shard']
    assert above['traceId'] == below['traceId'] == TRACE
    assert above['parentSpanId'] == PARENT and below['parentSpanId'] == above['spanId']
    assert (above['name'], below['name']) == ('GET api/tracks', 'POST rpc/ask')
    assert int(above['startTimeUnixNano']) <= int(below['startTimeUnixNano'])
    assert int(above['endTimeUnixNano']) > int(above['startTimeUnixNano'])
    status = {a['key']: a['value'] for a in above['attributes']}
    assert status['http.response.status_code'] == {'intValue': '200'}


def test_collector_that_is_away_costs_no_answer(start, logs):
    d = start('--logdir', logs, '--otlp-endpoint', 'http://127.0.0.1:9', '--trace-percent', '100', '--admin-port', '0')
    for _ in range(20):
        assert d.api('run', run='sample').status == 200
    code, _, text = daemon.run_to_end('--logdir', logs, '--otlp-endpoint', 'collector:4318', '--port', '0')
    assert code == 2 and 'http://' in text
