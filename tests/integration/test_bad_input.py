"""The bad-input table: one row a file or request, with the status and the sentence it gets, on our API
and on XProf's routes. After every row the server must still answer.

The statuses of XProf's routes are those that XProf 2.24.2 gave for the same files and requests.
"""
import gzip
import json
import os
import shutil
import tempfile

import daemon
import pytest
import xspace

MANY = '1000000'

# --- files ---
#
# name, options of gen, what /tracks must say (a function of the answer), XProf's trace_viewer@ statuses


def partial(answer, r):
    assert r.status == 200, r
    assert answer['partial'] and answer['damage'], answer
    assert 0 < answer['damage']['offset'] and len(answer['damage']['detail']) > 15
    assert answer['events'] > 0


def damaged_or_partial(answer, r):
    assert r.status in (200, 422), r
    if r.status == 422:
        daemon.sentence(r, 422, 'corrupt_profile')
    elif answer['partial']:
        assert answer['damage']['detail']


def whole(events):
    def check(answer, r):
        assert r.status == 200, r
        assert not answer['partial'], answer
        assert events is None or answer['events'] == events, answer['events']
    return check


def odd_times(answer, r):
    whole(None)(answer, r)
    lines = [x for p in answer['planes'] for x in p['lines']]
    assert sum(x['odd'] for x in lines) > 0
    sound = [x for x in lines if x['name'] == 'sound']
    assert sound and sound[0]['odd'] == 0 and sound[0]['events'] == 2000


def overlapping(answer, r):
    whole(10000)(answer, r)
    lines = [x for p in answer['planes'] for x in p['lines']]
    assert all(x['lanes'] <= 255 for x in lines) and sum(x['overflow'] for x in lines) > 0


def many_planes(answer, r):
    assert r.status in (200, 413), r
    if r.status == 200:
        assert answer['planes_total'] >= int(MANY) or answer['damage'] or answer.get('planes_cut')


FILES = [
    ('truncated', ['--hostile', 'truncated'], partial, (404,)),
    ('bitflip', ['--hostile', 'bitflip'], damaged_or_partial, (404,)),
    ('empty', ['--hostile', 'empty'], whole(0), (200,)),
    ('no-metadata', ['--hostile', 'no-metadata'], whole(2000), (200,)),
    ('overflow', ['--hostile', 'overflow'], odd_times, (200,)),
    ('html-names', ['--hostile', 'html-names'], whole(2000), (200,)),
    # XProf's parser rejects a string that is not UTF-8; we show it with U+FFFD.
    ('bad-utf8', ['--hostile', 'bad-utf8'], whole(2000), (200, 404)),
    ('disorder', ['--hostile', 'disorder'], whole(20000), (200,)),
    ('deep-overlap', ['--hostile', 'deep-overlap'], overlapping, (200,)),
    ('huge-stat', ['--hostile', 'huge-stat', '--size', '20MB'], whole(3), (200,)),
    ('dup-metadata', ['--hostile', 'dup-metadata'], whole(8000), (200,)),
    ('wall-clock-mixed', ['--hostile', 'wall-clock-mixed'], whole(8000), (200,)),
    ('late-timestamp', ['--hostile', 'late-timestamp'], whole(4000), (200,)),
]


@pytest.fixture(scope='module')
def logs():
    root = tempfile.mkdtemp(prefix='bad-input-')
    os.chmod(root, 0o755)
    for name, options, _, _ in FILES:
        daemon.generate(root, name, *options)
    daemon.generate(root, 'sound', '--steps', '3')
    for name, data in (('text', b'hello, this is no profile\n'), ('zeros', b'\0' * 5000), ('ones', b'\xff' * 5000)):
        os.makedirs(daemon.run_dir(root, name))
        with open(daemon.profile(root, name), 'wb') as f:
            f.write(data)
    os.makedirs(daemon.profile(root, 'folder'))
    os.makedirs(daemon.run_dir(root, 'nothing'))
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope='module')
def server(logs):
    d = daemon.Daemon('--logdir', logs)
    yield d
    alive = d.alive()
    d.stop()
    assert alive, ''.join(d.lines[-20:])


@pytest.fixture(autouse=True)
def still_answers(request):
    yield
    if 'server' in request.fixturenames:
        d = request.getfixturevalue('server')
        assert d.alive() and d.api('status').status == 200


@pytest.mark.parametrize('name,options,check,trace', FILES, ids=[f[0] for f in FILES])
def test_a_hostile_file(server, name, options, check, trace):
    r = server.loaded(name)
    check(r.json() if r.status == 200 else None, r)
    w = server.api('window', run=name, host='host-0', px=1500)
    assert w.status == r.status, w
    for search in ('a', 'dur>1ns'):
        assert server.api('search', run=name, host='host-0', q=search).status == r.status
    assert server.api('aggregate', run=name, host='host-0').status == r.status
    assert server.trace(name, hosts='host-0', resolution=8000).status in trace
    if trace == (200,):
        json.loads(server.trace(name, hosts='host-0', resolution=8000).body)
    assert server.compat('run_tools', run=name).status == 200
    assert server.compat('hosts', run=name, tag='trace_viewer@').json() == [{'hostname': 'host-0'}]
    assert server.compat('module_list', run=name).status == 200


@pytest.mark.parametrize('name', ['text', 'zeros', 'ones'])
def test_a_file_that_is_no_profile(server, name):
    r = server.loaded(name)
    if r.status == 200:
        assert r.json()['partial'] and r.json()['events'] == 0
        assert len(r.json()['damage']['detail']) > 15
    else:
        assert daemon.sentence(r, 422, 'corrupt_profile')['offset'] >= 0  # also when it is the first byte
    assert server.trace(name, hosts='host-0').status == 404
    assert server.compat('run_tools', run=name).json() == []
    host = server.api('run', run=name).json()['hosts'][0]
    assert host['state'] == 'unreadable' and 'no XSpace' in host['note']


def test_a_folder_in_place_of_a_file(server):
    listed = [r for r in server.api('runs', limit=1000).json()['runs'] if r['run'] == 'folder']
    assert not listed or listed[0]['state'] == 'empty'
    r = server.api('tracks', run='folder', host='host-0')
    daemon.sentence(r, 404, 'not_found')
    assert server.trace('folder', hosts='host-0').status in (200, 404)


def test_a_run_without_profiles(server):
    daemon.sentence(server.api('tracks', run='nothing', host='host-0'), 404, 'not_found')
    daemon.sentence(server.api('report', run='nothing', tool='overview_page'), 404, 'not_found', 'found there: nothing')
    listed = [r for r in server.api('runs', limit=1000).json()['runs'] if r['run'] == 'nothing']
    assert listed[0]['state'] == 'empty'
    assert server.compat('hosts', run='nothing', tag='trace_viewer@').json() == []
    assert server.compat('run_tools', run='nothing').json() == []
    r = server.trace('nothing')
    assert r.status == 404 and 'No xplane file found for run: nothing' in r.text()


def test_names_that_are_html_come_out_escaped(server):
    r = server.api('search', run='html-names', host='host-0', q='script')
    hits = r.json()['hits']
    assert hits and any('<script>' in h['name'] for h in hits)
    assert b'<' not in r.body
    assert b'<script>' not in server.api('tracks', run='html-names', host='host-0').body
    assert r.headers['x-content-type-options'] == 'nosniff'


def test_names_that_are_not_utf8_come_out_replaced(server):
    r = server.api('search', run='bad-utf8', host='host-0', q='long')
    assert '\ufffd' in r.json()['hits'][0]['name']


def test_an_event_without_metadata_has_an_empty_name(server):
    hit = server.api('search', run='no-metadata', host='host-0', q='dur>1ns').json()['hits'][0]
    event = server.api('event', run='no-metadata', host='host-0', id=hit['id']).json()
    assert event['name'] == '' and event['duration_ps'] == 900000


def test_the_later_of_two_names_counts(server):
    names = {r['name'] for r in server.api('aggregate', run='dup-metadata', host='host-0').json()['rows']}
    assert names and all(n.startswith('later ') for n in names)


def test_a_huge_stat_is_cut_and_what_follows_is_there(server):
    hits = server.api('search', run='huge-stat', host='host-0', q='huge').json()['hits']
    event = server.api('event', run='huge-stat', host='host-0', id=hits[0]['id'])
    assert event.status == 200 and len(event.body) < 1 << 20
    args = {a['name']: a for a in event.json()['args']}
    assert args['text']['cut'] and args['text']['value'].startswith('xxxx')
    assert args['after']['value'] == '7'


def test_lines_of_both_kinds_of_clock_are_beside_each_other(server):
    t = server.loaded('wall-clock-mixed').json()
    lines = {x['name']: x for p in t['planes'] for x in p['lines']}
    assert lines['near zero']['begin_ps'] == 0
    assert lines['near zero later']['begin_ps'] == 400000 * 1000
    assert lines['wall clock later']['begin_ps'] - lines['wall clock']['begin_ps'] == 500000 * 1000
    assert t['end_ps'] < 10**13


def test_a_timestamp_after_the_events_counts(server):
    lines = {x['name']: x for p in server.loaded('late-timestamp').json()['planes'] for x in p['lines']}
    assert lines['late']['begin_ps'] == lines['usual']['begin_ps']
    assert lines['late']['end_ps'] == lines['usual']['end_ps']


@pytest.mark.parametrize('kind', ['many-planes', 'many-lines'])
def test_a_million(start, tmp_path, kind):
    daemon.generate(tmp_path, kind, '--hostile', kind, '--events', MANY)
    d = start('--logdir', tmp_path)
    r = d.loaded(kind)
    assert r.status == 200 and len(r.body) < 1 << 20, r
    t = r.json()
    many = t['planes_total'] if kind == 'many-planes' else t['lines_total']
    assert many == int(MANY) and t['rows_total'] >= many
    assert t['rows'] == 2000 and t['next'] == '2000'
    last = d.api('tracks', run=kind, host='host-0', page=t['rows_total'] - 3).json()
    assert last['rows'] == 3 and last['next'] is None and last['events'] == t['events']
    if kind == 'many-planes':
        found = d.api('tracks', run=kind, host='host-0', q='TPU:777777').json()
        assert [p['name'] for p in found['planes']] == ['/device:TPU:777777'] and found['rows_total'] == 1
    else:
        line = last['planes'][0]['lines'][-1]['line']
        w = d.api('window', run=kind, host='host-0', px=1500, rows=line)
        assert [row.line for row in xspace.Window(w.body).rows] == [line]
    assert d.api('window', run=kind, host='host-0', px=1500).status == 200
    assert d.api('tracks', run=kind, host='host-0', derived='only').json()['derived_total'] == 0
    assert d.status_kb('VmHWM') < 1500000
    assert d.alive()


@pytest.mark.parametrize('damage', ['cut', 'crc', 'garbage', 'bomb', 'no-gzip'])
def test_hostile_compression(start, tmp_path, damage):
    daemon.generate(tmp_path, 'packed', '--steps', '2', '--gz')
    path = daemon.profile(tmp_path, 'packed') + '.gz'
    with open(path, 'rb') as f:
        data = f.read()
    with open(path, 'wb') as f:
        if damage == 'cut':
            f.write(data[:len(data) // 2])
        elif damage == 'crc':
            f.write(data[:-8] + b'\0\0\0\0' + data[-4:])
        elif damage == 'garbage':
            f.write(data[:len(data) // 2] + os.urandom(2000) + data[len(data) // 2:])
        elif damage == 'bomb':
            with gzip.GzipFile(fileobj=f, mode='wb', compresslevel=9, mtime=0) as g:
                for _ in range(600):
                    g.write(b'\0' * (1 << 20))
        else:
            f.write(b'no gzip at all')
    d = start('--logdir', tmp_path, '--memory-budget', '200MB')
    r = d.loaded('packed')
    if r.status == 200:
        assert r.json()['partial'] and r.json()['damage']['detail']
    else:
        assert r.status in (413, 422), r
        daemon.sentence(r, r.status, {413: 'too_large', 422: 'corrupt_profile'}[r.status])
    assert d.trace('packed', hosts='host-0').status in (200, 404)
    assert d.status_kb('VmHWM') < 400000
    assert d.api('status').status == 200


def nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def test_an_unreadable_file(start, logs):
    root = tempfile.mkdtemp(prefix='unreadable-')
    os.chmod(root, 0o755)
    try:
        daemon.generate(root, 'locked', '--steps', '1')
        os.chmod(daemon.profile(root, 'locked'), 0)
        try:
            d = start('--logdir', root, preexec=nobody if os.geteuid() == 0 else None)
        except PermissionError:
            pytest.skip('running as root, and the build is not readable for others')
        r = d.api('tracks', run='locked', host='host-0')
        assert r.status in (403, 502), r
        daemon.sentence(r, r.status, {403: 'denied', 502: 'storage'}[r.status], 'locked')
        host = d.api('run', run='locked').json()['hosts'][0]
        assert host['state'] == 'unreadable' and 'Permission denied' in host['note']
        assert d.trace('locked', hosts='host-0').status in (403, 404, 500)
        assert d.api('runs').json()['runs'][0]['run'] == 'locked'
    finally:
        shutil.rmtree(root, ignore_errors=True)


# --- names ---

LONG = 'x' * 5000
NAMES = ['..', '../..', '../../../../etc', '/etc', 'sound/..', 'sound/../sound', './sound', 'a//b', 'sound/', '.', '',
         'no such run', '"', "'", '<script>alert(1)</script>', '\\', '%2e%2e', 'a\nb', 'a\x1bb', 'ü', '日本', '\U0001f600', LONG]
RAW = [b'sound\0', b'\0', b'\xff\xfe', b'a\0/../b', b'\xc0\xae\xc0\xae']


@pytest.mark.parametrize('name', NAMES + RAW, ids=lambda n: repr(n)[:40])
def test_an_unknown_or_strange_run_name(server, name):
    for what, more in (('run', {}), ('tracks', {'host': 'host-0'}), ('window', {'host': 'host-0', 'px': 100}),
                       ('progress', {'host': 'host-0'}), ('search', {'host': 'host-0', 'q': 'x'})):
        r = server.api(what, run=name, **more)
        assert r.status in (400, 404), r
        problem = daemon.sentence(r, r.status, {400: 'bad_request', 404: 'not_found'}[r.status])
        assert len(problem['detail']) < 1000 and 'root:' not in r.text()
    assert server.compat('run_tools', run=name).status in (200, 400, 500)
    r = server.trace(name, hosts='host-0')
    if name != 'sound/':  # XProf takes a slash at the end off
        assert r.status in (404, 500), r
    assert r.body and b'root:' not in r.body


@pytest.mark.parametrize('name', NAMES + RAW, ids=lambda n: repr(n)[:40])
def test_an_unknown_or_strange_host_name(server, name):
    if name == '':
        return  # left out: the run has one host
    for what in ('tracks', 'window', 'aggregate', 'progress'):
        r = server.api(what, run='sound', host=name)
        assert r.status in (400, 404), r
        daemon.sentence(r, r.status, {400: 'bad_request', 404: 'not_found'}[r.status])
    r = server.trace('sound', hosts=name)
    assert r.status in (404, 500), r


def test_a_strange_run_name_that_exists(start, tmp_path):
    for name in ('<b>"\'&amp;', 'a b+c%20', 'ü日\U0001f600', 'x' * 200, '-rf', '\\'):
        daemon.generate(tmp_path, name, '--steps', '1', '--kind', 'python')
    raw = os.path.join(os.fsencode(daemon.run_dir(tmp_path, 'x' * 200))[:-200], b'\xff\xfe raw')
    os.rename(daemon.run_dir(tmp_path, '-rf'), raw)
    d = start('--logdir', tmp_path)
    listing = d.api('runs', limit=100)
    assert b'<' not in listing.body and len(listing.json()['runs']) == 6
    for name in ('<b>"\'&amp;', 'a b+c%20', 'ü日\U0001f600', 'x' * 200, '\\', b'\xff\xfe raw'):
        r = d.loaded(name)
        assert r.status == 200 and r.json()['events'] > 100, (name, r)
        assert d.trace(name, hosts='host-0').status == 200


def test_links_that_lead_outside_are_not_followed(start, tmp_path):
    inside, outside = tmp_path / 'logs', tmp_path / 'outside'
    daemon.generate(outside, 'secret', '--steps', '1')
    daemon.generate(inside, 'fine', '--steps', '1')
    os.symlink(daemon.run_dir(outside, 'secret'), daemon.run_dir(inside, 'link'))
    os.makedirs(daemon.run_dir(inside, 'file-link'))
    os.symlink(daemon.profile(outside, 'secret'), daemon.profile(inside, 'file-link'))
    d = start('--logdir', inside)
    for run in ('link', 'file-link'):
        r = d.api('tracks', run=run, host='host-0')
        assert r.status in (403, 404), r
        assert d.trace(run, hosts='host-0').status in (404, 500)
    assert d.loaded('fine').status == 200
    for key in ('session_path', 'run_path'):
        for path in (daemon.run_dir(outside, 'secret'), '/etc', '../outside', daemon.run_dir(inside, 'fine') + '/../../../../..'):
            r = d.compat('data', run='secret', tag='trace_viewer@', hosts='host-0', **{key: path})
            assert r.status in (400, 403, 404, 500), (key, path, r)
            assert d.compat('runs', **{key: path}).body.strip() in (b'[]', b'') or \
                d.compat('runs', **{key: path}).status >= 400
    assert d.compat('runs', session_path=daemon.run_dir(inside, 'fine')).json() == ['fine']


# --- request arguments of ours: what, arguments, a word of the sentence ---

BAD = [
    ('window', dict(t0='NaN', t1='5'), 't0'),
    ('window', dict(t0='1e3', t1='5000'), 't0'),
    ('window', dict(t0='0x10', t1='50'), 't0'),
    ('window', dict(t0='1.5', t1='5'), 't0'),
    ('window', dict(t0='5', t1='1'), 't1'),
    ('window', dict(t0='5', t1='5'), 't1'),
    ('window', dict(t0='5'), 't1'),
    ('window', dict(t1='5'), 't0'),
    ('window', dict(t0='99999999999999999999', t1='999999999999999999999'), 't0'),
    ('window', dict(t0='inf', t1='5'), 't0'),
    ('window', dict(px='0'), 'px'),
    ('window', dict(px='-1'), 'px'),
    ('window', dict(px='16385'), 'px'),
    ('window', dict(px='many'), 'px'),
    ('window', dict(px='4294967297'), 'px'),
    ('window', dict(max_bytes='1'), 'max_bytes'),
    ('window', dict(max_bytes='99999999999'), 'max_bytes'),
    ('window', dict(rows='x'), 'rows'),
    ('window', dict(rows='5-2'), 'rows'),
    ('window', dict(rows='0-4294967295'), 'rows'),
    ('window', dict(rows='-1'), 'rows'),
    ('window', dict(rows='4000000'), 'rows'),
    ('event', dict(), 'id'),
    ('event', dict(id='x'), 'id'),
    ('event', dict(id='-1'), 'id'),
    ('event', dict(id='18446744073709551616'), 'id'),
    ('search', dict(q='dur>10parsecs'), 'dur'),
    ('search', dict(q='a', limit='0'), 'limit'),
    ('search', dict(q='a', limit='1001'), 'limit'),
    ('search', dict(q='a', dir='up'), 'dir'),
    ('search', dict(q='x' * 20000), 'q'),
    ('aggregate', dict(limit='0'), 'limit'),
    ('aggregate', dict(t0='9', t1='-9'), 't1'),
]


@pytest.mark.parametrize('what,args,word', BAD, ids=lambda v: str(v)[:50])
def test_a_wrong_argument(server, what, args, word):
    daemon.sentence(server.api(what, run='sound', host='host-0', **args), 400, 'bad_request', word)


@pytest.mark.parametrize('args', [dict(t0=-10**15, t1=-10**14), dict(t0=-2**63, t1=2**63 - 1), dict(t0=2**62, t1=2**62 + 1),
                                  dict(t0=0, t1=1), dict(t0=-1, t1=1, px=16384)], ids=str)
def test_a_window_that_is_far_away_huge_or_tiny(server, args):
    r = server.api('window', run='sound', host='host-0', **args)
    assert r.status == 200, r
    assert len(r.body) <= 65536


def test_an_event_that_is_not_there(server):
    for i in (0, 1, 17, 10**9, 2**63):
        daemon.sentence(server.api('event', run='sound', host='host-0', id=i), 404, 'not_found')


@pytest.mark.parametrize('path', ['/api/v1/nope', '/api/v1/', '/p/other/api/v1/runs', '/p/local/api/v1/nope'])
def test_an_unknown_path_of_the_api(server, path):
    daemon.sentence(server.get(path), 404, 'not_found')


@pytest.mark.parametrize('path', ['/api/v2/runs', '/nope', '/p/', '/data/plugin/profile/nope.js', '/favicon.nope'])
def test_an_unknown_path_elsewhere(server, path):
    r = server.get(path)
    assert r.status == 404 and r.body, r


@pytest.mark.parametrize('method', ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'BREW'])
def test_a_wrong_method(server, method):
    r = server.request(method, '/api/v1/runs')
    assert r.status == 405, r
    assert r.json()['code'] == 'method_not_allowed'


def test_too_many_and_too_long_parameters(server):
    assert server.get('/api/v1/runs?' + '&'.join('a%d=1' % i for i in range(500))).status in (400, 200)
    daemon.sentence(server.get('/api/v1/run?run=' + 'a' * 100000), 413, 'too_large', 'query')
    assert server.get('/' + 'a' * 60000).status in (400, 404, 414, 431)


# --- requests on XProf's routes: query -> status ---

COMPAT = [
    ('run=sound&tag=trace_viewer@&hosts=host-0&resolution=abc', 404),
    ('run=sound&tag=trace_viewer@&hosts=host-0&resolution=-1', 200),
    ('run=sound&tag=trace_viewer@&hosts=host-0&start_time_ms=nan', 200),
    ('run=sound&tag=trace_viewer@&hosts=host-0&start_time_ms=x', 404),
    ('run=sound&tag=trace_viewer@&hosts=host-0&start_time_ms=5&end_time_ms=1', 200),
    ('run=sound&tag=trace_viewer@&hosts=host-0&start_time_ms=-5', 200),
    ('run=sound&tag=trace_viewer@&hosts=host-0&start_time_ms=1e300&end_time_ms=1e301', 200),
    ('run=sound&tag=trace_viewer@&hosts=host-0&event_name=train&start_time_ms=1&duration_ms=x&unique_id=0', 404),
    ('run=sound&tag=trace_viewer@&hosts=host-0&event_name=no+such&start_time_ms=1&duration_ms=1&unique_id=0', 404),
    ('run=sound&tag=nope&host=host-0', 404),
    ('run=sound', 404),
    ('run=sound&tag=trace_viewer@&hosts=nope', 404),
    ('run=sound&tag=trace_viewer@&hosts=a/b', 404),
    ('run=sound&tag=trace_viewer@&hosts=host-0,nope', 404),
    ('run=sound&tag=trace_viewer@&hosts=', 200),
    ('run=nope&tag=trace_viewer@', 404),
    ('run=..&tag=trace_viewer@', 404),
    ('run=../..&tag=trace_viewer@', 404),
    ('tag=trace_viewer@', 500),
]


@pytest.mark.parametrize('query,status', COMPAT, ids=[c[0][:90] for c in COMPAT])
def test_a_wrong_request_on_a_compatible_route(server, query, status):
    r = server.get(daemon.COMPAT + '/data?' + query)
    assert r.status == status, r
    assert r.body
    if status != 200:
        assert not r.type.startswith('application/problem'), r


@pytest.mark.parametrize('query', ['', 'run=nope', 'run=..', 'run=%00', 'run=%FF'])
def test_unknown_runs_are_empty_lists_on_compatible_routes(server, query):
    for route in ('hosts', 'run_tools'):
        r = server.get('%s/%s?%s' % (daemon.COMPAT, route, query))
        # XProf closes the connection where there is no run; any error will do.
        assert (r.status == 200 and r.json() == []) if query else r.status >= 400, r
