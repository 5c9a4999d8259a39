"""Share links: made, opened, listed, revoked; refused when altered, expired or of another project."""
import json
import os

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


def test_link_that_was_altered_or_cut_is_refused(server):
    url = '/p/open/' + made(server)['url']
    for at in (13, 20, 60, len(url) - 2):
        other = url[:at] + ('A' if url[at] != 'A' else 'B') + url[at + 1:]
        r = server.get(other)
        assert r.status == 403 and 'no share link' in r.text(), r
    for cut in ('/p/open/link-', url[:-1], url[:30], url + 'A', url + '='):
        assert server.get(cut).status == 403, cut


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


def test_another_server_knows_links_and_revocations_by_the_store(start, place, server):
    kept, gone = made(server), made(server)
    assert server.request('DELETE', '/p/open/api/v1/links?run=sample&id=' + gone['id']).status == 204
    second = start(*place)
    deadline = 100
    while second.get('/p/open/' + kept['url']).status == 503 and deadline:
        deadline -= 1
    assert second.get('/p/open/' + kept['url']).status == 303
    assert second.get('/p/open/' + gone['url']).status == 410


def test_keys_are_rotated_with_an_overlap(start, place, server, tmp_path):
    def with_keys(text):
        flags = list(place)
        flags[flags.index('--link-keys') + 1] = key_file(tmp_path / 'k', text)
        d = start(*flags)
        while d.get('/p/open/' + made(d)['url']).status == 503:
            pass
        return d
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
