"""Share links: made, opened, listed, revoked; refused when altered, expired or of another project."""
import base64
import hashlib
import hmac
import http.client
import json
import os
import time

import pytest

import daemon

KEY = 'a-key-for-tests-0123456789\n'
VIEW = 'trace?run=sample&t0=100&t1=2000'
DAY = 24 * 60


def key_file(path, text=KEY):
    path.write_text(text)
    return path


@pytest.fixture(scope='module')
def logs(tmp_path_factory):
    root = tmp_path_factory.mktemp('links')
    for run in ('sample', 'other', 'odd #1'):
        daemon.generate(root, run, '--steps', '2')
    os.makedirs(daemon.run_dir(root, 'long'))
    with open(daemon.profile(root, 'long'), 'wb') as f:
        f.truncate(64 << 20)  # more than lies between a server and a client that does not read
    for run, host in (('part-1', 'a'), ('part-2', 'b')):
        daemon.generate(root, run, '--steps', '2')
        os.rename(daemon.profile(root, run), daemon.profile(root, run, host))
    return root


@pytest.fixture(scope='module')
def place(logs, tmp_path_factory):
    """Flags of a server that has links, in a place of its own."""
    tmp = tmp_path_factory.mktemp('state')
    (tmp / 'state').mkdir()
    table = tmp / 'projects.json'
    table.write_text(json.dumps({'projects': {
        'open': {'roots': [str(logs)], 'links': {'anyone': True, 'max_days': 30}},
        'shut': {'roots': [str(logs)]}}}))
    return ['--projects', table, '--link-keys', key_file(tmp / 'keys'), '--state', tmp / 'state']


@pytest.fixture(scope='module')
def server(place):
    d = daemon.Daemon(*place)
    yield d
    d.stop()


def make(server, project='open', run='sample', view=VIEW, **more):
    body = json.dumps(dict({'run': run, 'view': view}, **more))
    return server.request('POST', '/p/%s/api/v1/links' % project, {'content-type': 'application/json'}, body)


def made(server, *args, **kw):
    r = make(server, *args, **kw)
    assert r.status == 201, r
    return r.json()


def test_link_opens_exactly_the_view_it_was_made_from(server):
    link = made(server, tool='trace', audience='anyone', minutes=60)
    assert link['url'].startswith('link-1')
    assert (link['run'], link['tool'], link['audience'], link['view']) == ('sample', 'trace', 'anyone', VIEW)
    assert link['expires_ms'] - link['issued_ms'] == 3600 * 1000
    r = server.get('/p/open/' + link['url'])
    assert r.status == 303
    assert r.headers['location'] == './' + VIEW
    assert r.headers['referrer-policy'] == 'no-referrer'
    assert r.headers['cache-control'] == 'no-store'


def test_view_with_an_odd_run_name_is_kept_byte_for_byte(server):
    view = 'report?run=odd%20%231&tool=op_profile'
    link = made(server, run='odd #1', view=view)
    assert server.get('/p/open/' + link['url']).headers['location'] == './' + view


def test_an_uploaded_file_is_shared_as_long_as_it_is_there(server, logs):
    with open(daemon.profile(logs, 'sample'), 'rb') as f:
        profile = f.read(1 << 20)
    at, ours = '/p/open/api/v1/', {'x-xprofd': '1', 'content-type': 'application/octet-stream'}
    r = server.request('POST', at + 'uploads', {'content-type': 'application/json'}, json.dumps({'name': 'a.xplane.pb', 'bytes': len(profile)}))
    run = r.json()['run']
    view = 'trace?run=%s&t=1..2' % run
    assert make(server, run=run, view=view).status == 404  # it is not whole
    assert server.request('POST', at + 'upload_piece?run=%s&at=0' % run, ours, profile).status == 200
    link = made(server, run=run, view=view, audience='anyone')
    assert server.get('/p/open/' + link['url']).headers['location'] == './' + view
    assert server.request('DELETE', at + 'uploads?run=' + run, ours).status == 204
    daemon.sentence(make(server, run=run, view=view), 404, 'not_found', 'any more')


def test_link_that_was_altered_or_cut_is_refused(server):
    url = '/p/open/' + made(server)['url']
    for at in (13, 20, 60, len(url) - 2):
        other = url[:at] + ('A' if url[at] != 'A' else 'B') + url[at + 1:]
        r = server.get(other)
        assert r.status == 403 and 'no share link' in r.text(), r
    for cut in ('/p/open/link-', url[:-1], url[:30], url + 'A', url + '='):
        assert server.get(cut).status == 403, cut


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def varint(n):
    out = b''
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def claims(project='open', expires=None, audience=0, view=VIEW):
    """proto/link.proto, by hand."""
    now = int(time.time())
    texts = [(1, b'0123456789abcdef'), (2, project.encode()), (3, b'sample'), (5, view.encode())]
    numbers = [(6, audience), (8, now - 600), (9, now + 600 if expires is None else expires)]
    return b''.join(varint(k << 3 | 2) + varint(len(v)) + v for k, v in texts) + \
        b''.join(varint(k << 3) + varint(v) for k, v in numbers)


def forge(payload=None, key=KEY.strip(), purpose=b'xprofd link 1\0', digest='sha256', version='1', mac=None):
    payload = claims() if payload is None else payload
    mac = hmac.new(key.encode(), purpose + payload, digest).digest()[:32] if mac is None else mac
    return 'link-' + version + b64(mac + payload)


def test_what_is_sealed_otherwise_is_no_link(server):
    now = int(time.time())
    assert server.get('/p/open/' + forge()).status == 303  # the forger knows how
    head, body = b64(b'{"alg":"none"}'), b64(b'{"project":"open","run":"sample"}')
    signed = b64(b'{"alg":"HS256"}') + '.' + body
    bad = {'another key': forge(key='another-key-0123456789'), 'an empty key': forge(key=''),
           'no mac': forge(mac=b'\0' * 32), 'a mac cut short': forge(mac=hmac.digest(KEY.strip().encode(), claims(), 'sha256')[:16]),
           'a plain hash': forge(mac=hashlib.sha256(b'xprofd link 1\0' + claims()).digest()),
           'sha-1': forge(digest='sha1'), 'sha-512': forge(digest='sha512'), 'no purpose': forge(purpose=b''),
           'a cookie': forge(purpose=b'xprofd link cookie 1\0'), 'an ask of shards': forge(purpose=b'xprofd rpc 1\0'),
           'version 0': forge(version='0'), 'version 2': forge(version='2'), 'no version': forge(version=''),
           'a token of no algorithm': 'link-' + head + '.' + body + '.', 'with the version': 'link-1' + head + '.' + body + '.',
           'a token of another kind': 'link-1' + signed + '.' + b64(hmac.digest(KEY.strip().encode(), signed.encode(), 'sha256')),
           'no claims': forge(b''), 'claims that are none': forge(b'\xff' * 40), 'an unknown audience': forge(claims(audience=3))}
    for what, url in bad.items():
        r = server.get('/p/open/' + url)
        assert r.status == 403 and 'no share link' in r.text(), (what, r)
    for expires in (now - 1, 1, 0):
        r = server.get('/p/open/' + forge(claims(expires=expires)))
        assert r.status == 410 and 'expired' in r.text(), r
    r = server.get('/p/shut/' + forge(claims('shut', audience=2)))
    assert r.status == 403 and 'no longer' in r.text(), r


def test_link_of_one_project_is_none_of_another(server):
    url = made(server)['url']
    r = server.get('/p/shut/' + url)
    assert r.status == 403 and 'another project' in r.text()
    assert server.get('/p/none/' + url).status == 404


def test_links_are_made_only_for_what_is_there_and_allowed(server):
    daemon.sentence(make(server, run='none', view='trace?run=none'), 404, 'not_found')
    daemon.sentence(make(server, 'shut', audience='anyone'), 403, 'denied', 'anyone')
    bad = [dict(minutes=0), dict(minutes=30 * DAY + 1), dict(minutes='60'), dict(minutes=1.5), dict(audience='all'),
           dict(audience='domain'), dict(domain='x.org'), dict(audience='domain', domain='x org'), dict(extra=1),
           dict(view='http://evil/?run=sample'), dict(view='//evil?run=sample'), dict(view='trace?run=other'),
           dict(view='trace'), dict(view='trace?run=sample&run=other'), dict(view='trace?run=sample\r\nx: y'),
           dict(view='trace?run=sample&x=' + 'y' * 1100), dict(tool=7), dict(tool='t' * 300)]
    for more in bad:
        r = make(server, **more)
        assert r.status == 400, (more, r)
    for body in ('', '[]', '{', '{"run":"sample","run":"other"}', '\0', '{"view":"' + 'x' * 100000 + '"}'):
        r = server.request('POST', '/p/open/api/v1/links', {'content-type': 'application/json'}, body)
        assert r.status == 400, (body[:40], r)


def test_pages_of_other_sites_make_and_revoke_no_link(server):
    kept, body = made(server), json.dumps({'run': 'sample', 'view': VIEW})
    json_type, own = {'content-type': 'application/json'}, {'origin': 'http://127.0.0.1:%d' % server.port}
    where = '/p/open/api/v1/links'
    for headers in ({'content-type': 'text/plain'}, {'content-type': 'application/x-www-form-urlencoded'}, {},
                    dict(json_type, origin='https://evil.example'), dict(json_type, **{'sec-fetch-site': 'cross-site'})):
        assert server.request('POST', where, headers, body).status == 403, headers
        if headers.get('content-type') == 'application/json':
            assert server.request('DELETE', where + '?run=sample&id=' + kept['id'], headers).status == 403, headers
    assert server.get('/p/open/' + kept['url']).status == 303
    assert server.request('POST', where, dict(json_type, **own), body).status == 201


def test_links_of_a_run_are_listed_and_revoked_singly(server):
    run = 'other'
    view = 'trace?run=other'
    one, two = made(server, run=run, view=view), made(server, run=run, view=view, audience='domain', domain='x.org')

    def listed():
        answer = server.get('/p/open/api/v1/links?run=other').json()
        assert answer['max_minutes'] == 30 * DAY and answer['anyone'] and not answer['more']
        return {x['id']: x for x in answer['links']}
    before = listed()
    assert {one['id'], two['id']} <= set(before)
    assert before[two['id']]['domain'] == 'x.org' and not before[two['id']]['revoked']
    assert 'url' not in before[one['id']]
    r = server.request('DELETE', '/p/open/api/v1/links?run=other&id=' + one['id'])
    assert r.status == 204
    assert server.request('DELETE', '/p/open/api/v1/links?run=other&id=' + one['id']).status == 204
    r = server.get('/p/open/' + one['url'])
    assert r.status == 410 and 'revoked' in r.text()
    assert server.get('/p/open/' + two['url']).status == 303
    assert listed()[one['id']]['revoked'] and not listed()[two['id']]['revoked']
    for id_ in ('0' * 32, 'x', '../../keys'):
        r = server.request('DELETE', '/p/open/api/v1/links?run=other&id=' + id_)
        assert r.status in (400, 404), r


def test_all_links_of_a_run_are_revoked_at_once_and_new_ones_are_good(server):
    run, view = 'odd #1', 'trace?run=odd%20%231'
    old = made(server, run=run, view=view)
    assert server.request('DELETE', '/p/open/api/v1/links?run=odd%20%231').status == 204
    assert server.get('/p/open/' + old['url']).status == 410
    new = made(server, run=run, view=view)
    assert server.get('/p/open/' + new['url']).status == 303
    assert server.get('/p/open/' + made(server)['url']).status == 303


def test_link_of_a_joined_run_is_one_of_its_parts(server):
    joined, view = 'part-1//part-2', 'trace?run=part-1%2F%2Fpart-2'
    assert server.get('/p/open/api/v1/run?run=part-1%2F%2Fpart-2').json()['location'] is None
    old = made(server, run=joined, view=view)
    for run in ('part-1', 'part-2', 'part-1%2F%2Fpart-2'):
        links = server.get('/p/open/api/v1/links?run=' + run).json()['links']
        assert [(x['id'], x['run']) for x in links] == [(old['id'], joined)], run
    assert server.request('DELETE', '/p/open/api/v1/links?run=part-2').status == 204
    assert server.get('/p/open/' + old['url']).status == 410
    turned = 'trace?run=part-2%2F%2Fpart-1'  # the same run, said the other way round
    new = made(server, run='part-2//part-1', view=turned)
    assert new['run'] == joined and new['id'] in [x['id'] for x in server.get('/p/open/api/v1/links?run=part-1%2F%2Fpart-2').json()['links']]
    assert server.get('/p/open/' + new['url']).headers['location'] == './' + turned
    assert server.request('DELETE', '/p/open/api/v1/links?run=part-1&id=' + new['id']).status == 204
    assert server.get('/p/open/' + new['url']).status == 410


def test_another_server_knows_links_and_revocations_by_the_store(start, place, server):
    kept, gone = made(server), made(server)
    assert server.request('DELETE', '/p/open/api/v1/links?run=sample&id=' + gone['id']).status == 204
    second = start(*place)
    assert second.get('/p/open/' + kept['url']).status == 303
    assert second.get('/p/open/' + gone['url']).status == 410


def test_keys_are_rotated_with_an_overlap(start, place, server, tmp_path):
    def with_keys(text):
        flags = list(place)
        flags[flags.index('--link-keys') + 1] = key_file(tmp_path / 'k', text)
        return start(*flags)
    old = made(server)['url']
    both = with_keys('a-newer-key-0123456789\n' + KEY)
    assert both.get('/p/open/' + old).status == 303
    new = made(both)['url']
    assert server.get('/p/open/' + new).status == 403
    alone = with_keys('a-newer-key-0123456789\n')
    assert alone.get('/p/open/' + new).status == 303
    assert alone.get('/p/open/' + old).status == 403


def test_no_token_is_in_the_records_or_the_log(server, place):
    url = made(server)['url']
    server.get('/p/open/' + url)
    state = str(place[place.index('--state') + 1])
    for folder, _, files in os.walk(state):
        for name in files:
            assert url[6:40] not in name
            with open(os.path.join(folder, name), encoding='utf8') as f:
                assert url[6:40] not in f.read()
    assert not any(url[6:40] in line for line in server.lines)


def test_server_without_keys_says_how_to_have_links(start, logs):
    d = start('--logdir', logs)
    r = d.request('POST', '/p/local/api/v1/links', {'content-type': 'application/json'}, '{}')
    daemon.sentence(r, 404, 'not_found', '--link-keys')
    assert d.get('/p/local/link-1abc').status == 404
    code, _, text = daemon.run_to_end('--logdir', logs, '--link-keys', 'x')
    assert code == 2 and '--state' in text


# --- what a link lets in ---

@pytest.fixture(scope='module')
def guarded(logs, tmp_path_factory):
    """A server that knows people by a header; ann edits, vic views, others only come by links."""
    tmp = tmp_path_factory.mktemp('guarded')
    (tmp / 'state').mkdir()
    (tmp / 'projects.json').write_text(json.dumps({'projects': {
        'open': {'roots': [str(logs)], 'viewers': ['user:vic@example.com'], 'editors': ['user:ann@example.com'],
                 'admins': ['user:ada@example.com'], 'links': {'anyone': True}},
        'shut': {'roots': [str(logs)], 'editors': ['user:ann@example.com']}}}))
    d = daemon.Daemon('--projects', tmp / 'projects.json', '--link-keys', key_file(tmp / 'keys'), '--state', tmp / 'state',
                      '--auth', 'header', '--trusted-header', 'x-user', '--trusted-from', '127.0.0.0/8',
                      '--audit-log', tmp / 'audit')
    d.audit = tmp / 'audit'
    yield d
    d.stop()


def person(name):
    return {'x-user': name} if name else {}


ADA, ANN, VIC, PAT, EVE = 'ada@example.com', 'ann@example.com', 'vic@example.com', 'pat@partner.org', 'eve@evil.org'


def link_of(server, who, project='open', run='sample', view=VIEW, **more):
    body = json.dumps(dict({'run': run, 'view': view}, **more))
    return server.request('POST', '/p/%s/api/v1/links' % project,
                          dict(person(who), **{'content-type': 'application/json'}), body)


def opened(server, url, who=None, project='open'):
    """-> (status, headers that the browser sends from then on)"""
    r = server.get('/p/%s/%s' % (project, url), person(who))
    cookie = r.headers.get('set-cookie')
    if cookie:
        assert 'HttpOnly' in cookie and 'SameSite=Lax' in cookie and 'ath=' not in cookie, cookie
        return r.status, dict(person(who), cookie=cookie.split(';')[0])
    return r.status, person(who)


def sees(server, headers, what, project='open'):
    return server.get('/p/%s/api/v1/%s' % (project, what), headers).status


def test_link_for_anyone_shows_its_run_and_nothing_else(guarded):
    url = link_of(guarded, ANN, audience='anyone', view='op_profile?run=sample').json()['url']
    assert sees(guarded, {}, 'run?run=sample') == 401
    status, browser = opened(guarded, url)
    assert status == 303 and 'cookie' in browser
    for what in ('run?run=sample', 'tracks?run=sample', 'report?run=sample&tool=op_profile', 'search?run=sample&q=x',
                 'report?run=sample&tool=overview_page', 'progress?run=sample&host=host-0'):
        assert sees(guarded, browser, what) == 200, what
    for what in ('runs', 'run?run=other', 'run', 'run?run=sample&run=other', 'tracks?run=other', 'links?run=sample', 'status',
                 'report?run=sample&tool=op_profile&run=other'):
        assert sees(guarded, browser, what) == 403, what
    assert sees(guarded, browser, 'run?run=sample', 'shut') in (401, 404)
    assert sees(guarded, browser, 'run?run=%73ample') == 200
    where = [guarded.get('/p/open/api/v1/run?run=sample', h).json()['location'] for h in (person(ANN), browser)]
    assert where[0].endswith('/sample') and where[1] is None
    facts = guarded.get('/p/open/api/v1/report?run=sample&tool=run_facts', person(ANN))
    known = [guarded.get('/p/open/api/v1/run?run=sample', h).json()['facts'] for h in (person(ANN), browser)]
    assert facts.status == 200 and known[0]['cores'] and known[1] == known[0]
    assert guarded.get('/p/open/op_profile?run=sample', browser).status == 200
    assert guarded.get('/p/open/data/plugin/profile/data?run=sample&tag=overview_page', browser).status == 403
    r = guarded.request('POST', '/p/open/api/v1/links', dict(browser, **{'content-type': 'application/json'}), '{}')
    assert r.status == 403


def test_link_of_one_tool_shows_that_tool_only(guarded):
    url = link_of(guarded, ANN, audience='anyone', tool='op_profile', view='op_profile?run=sample').json()['url']
    _, browser = opened(guarded, url)
    assert sees(guarded, browser, 'report?run=sample&tool=op_profile') == 200
    assert guarded.get('/p/open/api/v1/report?run=sample&tool=run_facts', person(ANN)).status == 200
    run = guarded.get('/p/open/api/v1/run?run=sample', browser).json()
    assert run['hosts'] and run['facts'] is None and run['kind'] is None  # they are of other pages
    for what in ('report?run=sample&tool=overview_page', 'report?run=sample', 'tracks?run=sample', 'window?run=sample',
                 'report?run=sample&tool=op_profile&tool=hlo_stats'):
        assert sees(guarded, browser, what) == 403, what
    _, browser = opened(guarded, link_of(guarded, ANN, audience='anyone', tool='trace').json()['url'])
    assert sees(guarded, browser, 'tracks?run=sample') == 200
    assert sees(guarded, browser, 'report?run=sample&tool=op_profile') == 403


def test_a_user_downloads_two_files_at_a_time(guarded):
    def begin(who):
        c = http.client.HTTPConnection('127.0.0.1', guarded.port, timeout=30)
        c.request('GET', '/p/open/api/v1/file?run=long&host=host-0', headers=person(who))
        return c, c.getresponse()
    under_way = [begin(ANN) for _ in range(2)]
    assert [r.status for _, r in under_way] == [200, 200]
    _, third = begin(ANN)
    assert third.status == 503 and b'2 files' in third.read()
    under_way.append(begin(VIC))
    assert under_way[-1][1].status == 200
    for c, r in under_way[1:]:
        r.close()
        c.close()
    assert len(under_way[0][1].read()) == 64 << 20
    for _ in range(300):  # it is known of a client that left once more is to be sent to it
        c, r = begin(ANN)
        if r.status == 200:
            break
        time.sleep(0.1)
    assert r.status == 200
    r.close()
    c.close()


def test_link_for_a_domain_lets_in_its_people_only(guarded):
    url = link_of(guarded, ANN, audience='domain', domain='partner.org').json()['url']
    status, browser = opened(guarded, url, PAT)
    assert status == 303 and sees(guarded, browser, 'run?run=sample') == 200
    assert opened(guarded, url, EVE)[0] == 403
    assert opened(guarded, url)[0] == 401
    stolen = dict(browser, **person(EVE))
    assert sees(guarded, stolen, 'run?run=sample') == 404
    assert sees(guarded, dict(cookie=browser['cookie']), 'run?run=sample') == 401


def test_link_for_members_gives_nobody_a_right(guarded):
    url = link_of(guarded, VIC).json()['url']
    status, browser = opened(guarded, url, VIC)
    assert status == 303 and 'cookie' not in browser
    assert opened(guarded, url, EVE)[0] == 403
    assert opened(guarded, url)[0] == 401


def test_who_may_make_and_revoke_which_links(guarded):
    assert link_of(guarded, VIC, audience='anyone').status == 403
    assert link_of(guarded, VIC, audience='domain', domain='x.org').status == 403
    assert link_of(guarded, EVE).status == 404
    assert link_of(guarded, None).status == 401
    assert link_of(guarded, ANN, 'shut', audience='anyone').status == 403
    hers, his = link_of(guarded, ANN).json()['id'], link_of(guarded, VIC).json()['id']
    where = '/p/open/api/v1/links?run=sample'
    may = {x['id']: x['may_revoke'] for x in guarded.get(where, person(VIC)).json()['links']}
    assert (may[hers], may[his]) == (False, True)
    assert guarded.request('DELETE', where + '&id=' + hers, person(VIC)).status == 403
    assert guarded.request('DELETE', where, person(VIC)).status == 403
    assert guarded.request('DELETE', where + '&id=' + his, person(VIC)).status == 204
    assert guarded.request('DELETE', where + '&id=' + hers, person(ANN)).status == 204


def test_an_admin_sees_the_links_of_all_runs_and_revokes_those_of_one(guarded):
    hers, his = link_of(guarded, ANN, run='odd #1', view='trace?run=odd%20%231').json(), link_of(guarded, VIC, run='other',
                                                                                             view='trace?run=other').json()
    elsewhere = link_of(guarded, ANN, project='shut').json()
    where = '/p/open/api/v1/links'
    for who in (ANN, VIC):
        daemon.sentence(guarded.get(where, person(who)), 403, 'denied', 'admin')
    assert guarded.get(where, person(EVE)).status == 404 and guarded.get(where).status == 401

    def listed():
        answer = guarded.get(where, person(ADA)).json()
        assert answer['next'] is None and not answer['more']
        return {x['id']: x for x in answer['links']}
    found = listed()
    assert found[hers['id']]['run'] == 'odd #1' and found[hers['id']]['by'] == 'user:' + ANN
    assert found[his['id']]['run'] == 'other' and found[his['id']]['may_revoke']
    assert elsewhere['id'] not in found and not any('url' in x for x in found.values())
    assert guarded.request('DELETE', where + '?run=odd%20%231', person(ADA)).status == 204
    found = listed()
    assert found[hers['id']]['revoked'] and not found[his['id']]['revoked']
    assert guarded.get('/p/open/' + hers['url'], person(VIC)).status == 410
    told = [json.loads(line) for line in guarded.audit.read_text().splitlines()]
    assert ('links_of_run_revoked', 'user:' + ADA, 'odd #1') in [(e['what'], e['who'], e.get('detail')) for e in told]
    for bad in ('?run=', '?after=', '?after=' + 'x' * 3000):
        r = guarded.get(where + bad, person(ADA))
        assert r.status == 400, (bad, r)


def test_cookie_of_a_link_ends_with_the_link(guarded):
    link = link_of(guarded, ANN, audience='anyone').json()
    _, browser = opened(guarded, link['url'])
    assert sees(guarded, browser, 'run?run=sample') == 200
    name, value = browser['cookie'].split('=', 1)
    for bad in (value[:-1], value[:-2] + ('A' if value[-2] != 'A' else 'B') + value[-1], link['url'][5:]):
        assert sees(guarded, {'cookie': name + '=' + bad}, 'run?run=sample') == 401
    assert guarded.get('/p/open/link-' + value).status == 403
    both = {'cookie': 'a=b; xprofd-link-00000000=x; ' + browser['cookie']}
    assert sees(guarded, both, 'run?run=sample') == 200
    assert guarded.request('DELETE', '/p/open/api/v1/links?run=sample&id=' + link['id'], person(ANN)).status == 204
    assert sees(guarded, browser, 'run?run=sample') == 401
    told = [json.loads(line) for line in guarded.audit.read_text().splitlines()]
    mine = [(e['what'], e['who']) for e in told if e.get('detail') == link['id']]
    assert mine == [('link_made', 'user:' + ANN), ('link_opened', 'nobody'), ('link_revoked', 'user:' + ANN)]
    assert link['url'][6:40] not in guarded.audit.read_text()
