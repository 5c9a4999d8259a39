"""Who comes in, and to what: bearer tokens, login by browser, a proxy's word; two projects with different viewers."""
import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

import daemon
import fake_idp

ANN, BOB, EVE = 'ann', 'bob', 'eve'


@pytest.fixture(scope='module')
def idp(tmp_path_factory):
    p = fake_idp.Provider(tmp_path_factory.mktemp('idp'))
    p.people = {ANN: {'email': 'Ann@Example.com', 'email_verified': True, 'groups': ['perf']},
                BOB: {'email': 'bob@other.example', 'email_verified': True},
                EVE: {'email': 'ann@example.com', 'email_verified': False}}
    yield p
    p.stop()


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """A folder with runs, the table, keys and logs."""
    root = tmp_path_factory.mktemp('auth')
    daemon.generate(root / 'a', 'run-a', '--steps', '2')
    daemon.generate(root / 'b', 'run-b', '--steps', '2')
    table = {'a': {'roots': [str(root / 'a')], 'viewers': ['domain:example.com'], 'admins': ['user:ANN@example.com']},
             'b': {'roots': [str(root / 'b')], 'viewers': ['user:bob@other.example', 'group:PERF']},
             'all': {'roots': [str(root / 'b')], 'viewers': ['members']}}
    (root / 'projects.json').write_text(json.dumps({'projects': table}))
    (root / 'cookie-key').write_text('a key that seals the cookies\n')
    (root / 'client-secret').write_text(fake_idp.SECRET + '\n')
    return root


def flags(idp, place):
    return ['--projects', place / 'projects.json', '--auth', 'oidc', '--oidc-issuer', idp.issuer,
            '--oidc-client-id', fake_idp.CLIENT, '--oidc-client-secret-file', place / 'client-secret',
            '--cookie-key', place / 'cookie-key', '--audit-log', place / 'audit', '--rate-limit-address', '1000']


@pytest.fixture(scope='module')
def server(idp, place):
    d = daemon.Daemon(*flags(idp, place))
    yield d
    d.stop()


def bearer(token):
    return {'authorization': 'Bearer ' + token}


def runs(server, project, headers):
    r = server.get('/p/%s/api/v1/runs' % project, headers)
    return [x['run'] for x in r.json()['runs']] if r.status == 200 else r.status


def projects(server, headers):
    r = server.api('projects', headers)
    return {p['project']: p['right'] for p in r.json()['projects']} if r.status == 200 else r.status


def audit(place):
    return [json.loads(line) for line in open(place / 'audit', encoding='utf8')]


# --- programs ---

def test_who_brings_no_token_is_asked_for_one(server):
    for path in ('/api/v1/projects', '/p/a/api/v1/runs', '/p/none/api/v1/runs', '/p/a/', '/p/none/', '/',
                 '/data/plugin/profile/runs', '/p/a/data/plugin/profile/runs'):
        r = server.get(path)
        assert r.status == 401 and r.headers['www-authenticate'].startswith('Bearer'), (path, r)
        daemon.sentence(r, 401, 'signed_out', 'sign in')
    assert server.api('me').json()['kind'] == 'nobody'


def test_two_projects_have_viewers_of_their_own(server, idp):
    ann, bob, eve = (bearer(idp.token(who)) for who in (ANN, BOB, EVE))
    assert projects(server, ann) == {'a': 'admin', 'b': 'view', 'all': 'view'}
    assert projects(server, bob) == {'b': 'view', 'all': 'view'}
    assert projects(server, eve) == {'all': 'view'}
    assert runs(server, 'a', ann) == ['run-a'] and runs(server, 'b', ann) == ['run-b']
    assert runs(server, 'a', bob) == 404 and runs(server, 'b', bob) == ['run-b']
    hidden, absent = server.get('/p/a/api/v1/runs', bob), server.get('/p/nope/api/v1/runs', bob)
    assert hidden.body == absent.body
    assert server.get('/p/a/api/v1/runs', ann).headers['cache-control'].startswith('private')
    assert server.api('me', ann).json()['name'] == 'user:ann@example.com'


def test_tokens_that_are_no_good_are_refused(server, idp):
    now = int(time.time())
    good = idp.token(BOB)
    head, claims, sig = good.split('.')
    other = fake_idp.Key(idp.folder, 'other', 'RS256')
    n = base64.urlsafe_b64decode(idp.keys[0].jwk()['n'] + '==')
    bad = {'altered claims': '.'.join([head, fake_idp.b64(idp.claims(ANN)), sig]),
           'altered signature': good[:-8] + 'AAAAAAAA', 'cut': good[:-9], 'nothing': '', 'words': 'not a token',
           'none': fake_idp.b64({'alg': 'none'}) + '.' + claims + '.',
           'hmac with the public key': fake_idp.b64({'alg': 'HS256', 'kid': 'one'}) + '.' + claims + '.' + fake_idp.b64(n[:32]),
           'expired': idp.token(BOB, exp=now - 61), 'not yet': idp.token(BOB, nbf=now + 900),
           'another audience': idp.token(BOB, aud='them'), 'another issuer': idp.token(BOB, iss='https://x'),
           'another key by the name': other.sign(idp.claims(BOB), kid='one'), 'huge': 'a.' + 'b' * 20000 + '.c'}
    for what, token in bad.items():
        r = server.get('/p/b/api/v1/runs', bearer(token))
        assert r.status == 401 and 'invalid_token' in r.headers['www-authenticate'], (what, r)
        assert server.get('/p/b/api/v1/runs', bearer(token)).status == 401, what
    assert runs(server, 'b', bearer(good)) == ['run-b']


def test_keys_are_fetched_when_one_is_new_but_not_for_each_that_is_unknown(idp, place, start):
    server = start(*flags(idp, place))
    assert runs(server, 'b', bearer(idp.token(BOB))) == ['run-b']
    before = idp.asked.count('/jwks')
    stranger = fake_idp.Key(idp.folder, 'stranger', 'ES256')
    for _ in range(3):
        assert server.get('/p/b/api/v1/runs', bearer(idp.token(BOB, stranger))).status == 401
    assert idp.asked.count('/jwks') - before <= 1
    fresh = start(*flags(idp, place))
    idp.keys.append(stranger)
    try:
        assert runs(fresh, 'b', bearer(idp.token(BOB, stranger))) == ['run-b']
        assert runs(fresh, 'b', bearer(stranger.sign(idp.claims(BOB), kid=None))) == ['run-b']
    finally:
        idp.keys.remove(stranger)


def test_a_provider_that_is_away_is_said(idp, place, start):
    idp.down = True
    try:
        server = start(*flags(idp, place))
        daemon.sentence(server.get('/p/b/api/v1/runs', bearer(idp.token(BOB))), 503, 'busy', 'provider')
        r = server.get('/auth/login')
        assert r.status == 503 and 'provider' in r.text()
    finally:
        idp.down = False


# --- browsers ---

class Browser:
    """Cookies and redirects of one site."""

    def __init__(self, server):
        self.server, self.cookies, self.set = server, {}, []

    def ask(self, method, path, headers=None):
        headers = dict({'accept': 'text/html'}, **(headers or {}))
        if self.cookies:
            headers['cookie'] = '; '.join('%s=%s' % c for c in self.cookies.items())
        import http.client
        c = http.client.HTTPConnection('127.0.0.1', self.server.port, timeout=30)
        try:
            c.request(method, path, headers=headers)
            answer = c.getresponse()
            r = daemon.Reply(answer, answer.read())
            for line in answer.msg.get_all('set-cookie') or []:
                self.set.append(line)
                name, value = line.split(';')[0].split('=', 1)
                self.cookies.pop(name, None)
                if value:
                    self.cookies[name] = value
        finally:
            c.close()
        if 'location' in r.headers:
            r.to = urllib.parse.urljoin('http://127.0.0.1:%d%s' % (self.server.port, path), r.headers['location'])
        return r

    def local(self, url):
        base = 'http://127.0.0.1:%d' % self.server.port
        assert url.startswith(base + '/'), url
        return url[len(base):]

    def sign_in(self, idp, who, page='/p/b/trace?run=run-b&host=host-0'):
        first = self.ask('GET', page)
        assert first.status == 302, first
        second = self.ask('GET', self.local(first.to))
        assert second.status == 302, second
        return self.ask('GET', self.local(idp.let_in(second.to, who)))


def test_a_browser_signs_in_and_comes_back_to_its_page(server, idp, place):
    b, told = Browser(server), len(audit(place))
    r = b.sign_in(idp, BOB)
    assert r.status == 303 and b.local(r.to) == '/p/b/trace?run=run-b&host=host-0'
    assert b.ask('GET', '/p/b/trace').status == 200
    assert b.ask('GET', '/p/a/').status == 404
    assert runs(server, 'b', {'cookie': 'xprofd-session=' + b.cookies['xprofd-session']}) == ['run-b']
    for line in b.set:
        assert 'HttpOnly' in line and 'SameSite=Lax' in line and 'Path=/' in line
    out = b.ask('POST', '/auth/logout', {'sec-fetch-site': 'cross-site'})
    assert out.status == 403 and 'xprofd-session' in b.cookies
    assert b.ask('POST', '/auth/logout', {'sec-fetch-site': 'same-origin'}).status == 303
    assert 'xprofd-session' not in b.cookies and b.ask('GET', '/p/b/').status == 302
    assert '"%s/out?a=b&client_id=%s"' % (idp.issuer, fake_idp.CLIENT) in b.ask('GET', '/auth/logout').text()
    assert [e['what'] for e in audit(place)[told:] if e['who'] == 'user:bob@other.example'] == ['sign_in', 'sign_out']


def test_a_login_that_was_not_begun_here_does_not_end_here(server, idp):
    a, b = Browser(server), Browser(server)
    url = {}
    for who in (a, b):
        url[who] = idp.let_in(who.ask('GET', '/auth/login').to, BOB)
    crossed = b.ask('GET', b.local(url[a]))
    assert crossed.status == 403 and 'another login' in crossed.text() and 'xprofd-session' not in b.cookies
    stranger = Browser(server)
    assert stranger.ask('GET', stranger.local(url[b])).status == 403
    ended = Browser(server)
    code = idp.let_in(ended.ask('GET', '/auth/login').to, BOB)
    idp.codes.clear()
    assert ended.ask('GET', ended.local(code)).status == 403 and 'xprofd-session' not in ended.cookies
    assert ended.ask('GET', '/auth/callback?error=access_denied&state=x').status == 403


def test_a_login_whose_token_or_proof_is_of_another_ends_in_a_refusal(server, idp):
    for change in ({'nonce': 'of another login'}, {'nonce': None}, {'code_challenge': 'of another browser'},
                   {'code_challenge_method': 'plain'}, {'redirect_uri': 'https://evil.example/'}, {'sub': ''}):
        b = Browser(server)
        url = idp.let_in(b.ask('GET', '/auth/login').to, BOB)
        list(idp.codes.values())[-1].update(change)
        r = b.ask('GET', b.local(url))
        assert r.status == 403 and 'xprofd-session' not in b.cookies, (change, r)


@pytest.mark.parametrize('place_', ['https://evil.example/', '//evil.example', '/p/a/', '..//evil.example', '\\\\evil',
                                    'javascript:alert(1)', 'p/%2e%2e/x', 'p/a/\r\nset-cookie:x'])
def test_a_login_leads_to_this_site_only(server, idp, place_):
    b = Browser(server)
    r = b.ask('GET', '/auth/login?to=' + urllib.parse.quote(place_, safe=''))
    r = b.ask('GET', b.local(idp.let_in(r.to, BOB)))
    assert r.status == 303 and b.local(r.to) == '/'


def test_cookies_that_were_altered_let_nobody_in(server, idp):
    b = Browser(server)
    b.sign_in(idp, BOB)
    good = b.cookies['xprofd-session']
    for bad in (good[:-1], good[:-2] + ('AA' if good[-2:] != 'AA' else 'BB'), 'B' + good[1:], '', 'x', good + 'A', good * 20):
        assert runs(server, 'b', {'cookie': 'xprofd-session=' + bad}) == 401, bad
    assert runs(server, 'b', {'cookie': 'xprofd-login=' + good}) == 401
    assert runs(server, 'b', {'cookie': 'a=b; xprofd-session=%s; c=d' % good}) == ['run-b']


def test_a_session_outlives_the_process_and_serves_a_second_one(server, idp, place, start):
    b = Browser(server)
    b.sign_in(idp, BOB)
    other = start(*flags(idp, place))
    assert runs(other, 'b', {'cookie': 'xprofd-session=' + b.cookies['xprofd-session']}) == ['run-b']


def test_behind_a_prefix_cookies_and_addresses_are_those_of_the_public_url(idp, place, start):
    server = start(*flags(idp, place), '--public-url', 'https://tools.example/profiles')
    b = Browser(server)
    r = b.ask('GET', '/auth/login')
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(r.to).query))
    assert asked['redirect_uri'] == 'https://tools.example/profiles/auth/callback'
    assert all('; Secure' in line and 'Path=/profiles/;' in line for line in b.set) and b.set
    back = urllib.parse.urlsplit(idp.let_in(r.to, BOB))
    r = b.ask('GET', '/auth/callback?' + back.query)
    assert r.status == 303 and r.headers['location'] == '../'
    assert runs(server, 'b', {'cookie': 'xprofd-session=' + b.cookies['xprofd-session']}) == ['run-b']


@pytest.fixture
def real_provider():
    """Somebody else's implementation of a provider, with a user `bob`."""
    tool = shutil.which('oidc-provider-mock') or os.path.join(os.path.dirname(sys.executable), 'oidc-provider-mock')
    if not os.path.exists(tool):
        pytest.skip('oidc-provider-mock is not installed (pip install oidc-provider-mock): only our own provider was asked')
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    claims = json.dumps({'sub': 'bob', 'email': 'bob@other.example', 'email_verified': True})
    proc = subprocess.Popen([tool, '-p', str(port), '--user-claims', claims], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    issuer = 'http://127.0.0.1:%d' % port
    try:
        end = time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(issuer + '/.well-known/openid-configuration', timeout=5) as r:
                    issuer = json.load(r)['issuer']
                break
            except OSError:
                assert proc.poll() is None and time.monotonic() < end, 'the provider did not start'
                time.sleep(0.1)
        yield issuer
    finally:
        proc.terminate()
        proc.wait()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


def test_a_login_at_a_provider_that_is_not_ours(place, start, real_provider):
    server = start('--projects', place / 'projects.json', '--auth', 'oidc', '--oidc-issuer', real_provider,
                   '--oidc-client-id', 'x', '--oidc-client-secret-file', place / 'client-secret')
    b = Browser(server)
    to = b.ask('GET', b.local(b.ask('GET', '/p/b/').to)).to
    try:
        urllib.request.build_opener(NoRedirect).open(to, data=b'sub=bob', timeout=30)
        raise AssertionError('the provider did not send the browser back')
    except urllib.error.HTTPError as answer:
        assert answer.code in (302, 303), answer
        back = answer.headers['location']
    r = b.ask('GET', b.local(back))
    assert r.status == 303 and b.local(r.to) == '/p/b/', r
    assert b.ask('GET', '/api/v1/me').json()['name'] == 'user:bob@other.example'
    assert runs(server, 'b', {'cookie': 'xprofd-session=' + b.cookies['xprofd-session']}) == ['run-b']


# --- what changes something ---

CHANGES = '/p/a/data/plugin/profile/capture_profile?duration=1'


@pytest.mark.parametrize('headers, status', [
    ({'sec-fetch-site': 'cross-site'}, 403),
    ({'sec-fetch-site': 'same-site'}, 403),
    ({'origin': 'https://evil.example'}, 403),
    ({'origin': 'null'}, 403),
    ({'sec-fetch-site': 'same-origin'}, 500),
    ({}, 500),
])
def test_a_page_of_another_site_changes_nothing(server, idp, headers, status):
    b = Browser(server)
    b.sign_in(idp, ANN)
    for method in ('POST', 'GET'):
        assert b.ask(method, CHANGES, headers).status == status


def test_a_viewer_changes_nothing(server, idp, place):
    r = server.get('/p/b/data/plugin/profile/capture_profile', bearer(idp.token(BOB)))
    daemon.sentence(r, 403, 'denied', 'right')
    assert any(e['what'] == 'capture_profile' and e['outcome'] == 'refused' and e['project'] == 'b' for e in audit(place))


def test_an_editor_uploads_and_nobody_else(server, idp, place):
    def ask(who, method, what, body, **kw):
        head = dict(bearer(idp.token(who)), **{'content-type': 'application/json'})
        return server.request(method, '/p/a/api/v1/%s?%s' % (what, daemon.query(**kw)), head, body)
    wish = json.dumps({'name': 'x.xplane.pb', 'bytes': 3})
    told = len(audit(place))
    daemon.sentence(server.request('POST', '/p/b/api/v1/uploads', bearer(idp.token(BOB)), wish), 403, 'denied', 'edit')
    run = ask(ANN, 'POST', 'uploads', wish).json()['run']
    assert ask(BOB, 'POST', 'upload_piece', b'\n\0\n', run=run, at=0).status == 404
    assert ask(ANN, 'POST', 'upload_piece', b'\n\0\n', run=run, at=0).status == 200
    assert ask(ANN, 'GET', 'run', None, run=run).status == 200
    assert server.get('/p/b/api/v1/run?run=' + run, bearer(idp.token(BOB))).status == 404
    assert ask(BOB, 'DELETE', 'uploads', None, run=run).status == 404
    assert ask(ANN, 'DELETE', 'uploads', None, run=run).status == 204
    daemon.sentence(server.request('DELETE', '/p/b/api/v1/uploads?run=' + run, bearer(idp.token(BOB))), 403, 'denied', 'edit')
    # The pieces are not told of one by one.
    assert [(e['what'], e['who'], e['project'], e['outcome'], e['detail']) for e in audit(place)[told:]] == [
        ('uploads', 'user:bob@other.example', 'b', 'refused', 'the right is missing'),
        ('upload_made', 'user:ann@example.com', 'a', 'ok', run),
        ('upload_removed', 'user:ann@example.com', 'a', 'ok', run),
        ('uploads', 'user:bob@other.example', 'b', 'refused', 'the right is missing')]


def test_who_announces_much_takes_no_place_of_others(server, idp):
    def begin(size):
        head = dict(bearer(idp.token(ANN)), **{'content-type': 'application/json'})
        return server.request('POST', '/p/a/api/v1/uploads', head, json.dumps({'name': 'x', 'bytes': size}))
    made = begin(512 << 20).json()['run']
    daemon.sentence(begin(1), 503, 'busy', 'you keep 1 uploaded file with')
    head = dict(bearer(idp.token(ANN)), **{'x-xprofd': '1'})
    assert server.request('DELETE', '/p/a/api/v1/uploads?run=' + made, head).status == 204


def test_without_identities_other_sites_change_nothing_either(sample):
    path = daemon.COMPAT + '/capture_profile'
    assert sample.request('POST', path, {'origin': 'https://evil.example'}).status == 403
    assert sample.request('POST', path, {'origin': 'http://127.0.0.1:%d' % sample.port}).status == 500


# --- proxies ---

def test_a_trusted_header_is_who_it_is(place, start):
    (place / 'proxy').write_text('a secret of the proxy\n')
    server = start('--projects', place / 'projects.json', '--auth', 'header', '--trusted-header', 'X-Forwarded-Email',
                   '--trusted-secret-file', place / 'proxy', '--trusted-from', '127.0.0.0/8', '--host', '0.0.0.0')
    known = {'x-xprofd-secret': 'a secret of the proxy'}
    ann = dict(known, **{'x-forwarded-email': 'ANN@example.com'})
    assert projects(server, ann) == {'a': 'admin', 'all': 'view'}
    assert projects(server, dict(ann, **{'x-xprofd-groups': 'none, perf'})) == {'a': 'admin', 'all': 'view', 'b': 'view'}
    for bad in ({'x-forwarded-email': 'ann@example.com'}, dict(ann, **{'x-xprofd-secret': 'another'}), known, {},
                dict(ann, **{'x-forwarded-email': 'ann@example.com,eve@example.com'})):
        assert projects(server, bad) == 401, bad
    assert server.get('/p/a/', {'accept': 'text/html'}).status == 401


def test_a_header_from_elsewhere_is_nobody(place, start):
    server = start('--projects', place / 'projects.json', '--auth', 'header', '--trusted-header', 'x-user',
                   '--trusted-from', '10.0.0.0/8')
    assert projects(server, {'x-user': 'ann@example.com'}) == 401


def test_an_assertion_of_the_identity_aware_proxy_is_checked(idp, place, start):
    key = fake_idp.Key(idp.folder, 'iap', 'ES256')
    idp.keys.append(key)
    audience = '/projects/1/global/backendServices/2'
    try:
        server = start('--projects', place / 'projects.json', '--auth', 'iap', '--iap-audience', audience,
                       '--iap-keys', idp.issuer + '/jwks')

        def asked(signer=key, **more):
            claims = idp.claims(ANN, **dict({'iss': 'https://cloud.google.com/iap', 'aud': audience}, **more))
            return projects(server, {'x-goog-iap-jwt-assertion': signer.sign(claims)})
        assert asked()['a'] == 'admin'
        assert asked(aud='/projects/1/global/backendServices/3') == 401
        assert asked(iss='https://accounts.google.com') == 401
        assert asked(signer=idp.keys[0]) == 401
        assert projects(server, {}) == 401
    finally:
        idp.keys.remove(key)


# --- limits and starts ---

def test_who_asks_too_often_is_told_to_wait(place, start):
    server = start('--projects', place / 'projects.json', '--auth', 'header', '--trusted-header', 'x-user',
                   '--rate-limit', '4', '--rate-limit-address', '1')

    def statuses(headers, n):
        return [server.api('projects', headers).status for _ in range(n)]
    ann, bob = {'x-user': 'ann@example.com'}, {'x-user': 'bob@other.example'}
    got = statuses(ann, 60)
    assert got[:20] == [200] * 20 and 429 in got
    assert statuses(bob, 5) == [200] * 5
    assert 429 in statuses({}, 20)
    while True:
        r = server.api('projects', ann)
        if r.status == 429:
            break
    assert int(r.headers['retry-after']) >= 1
    daemon.sentence(r, 429, 'limited', 'too many')


@pytest.mark.parametrize('flags_, words', [
    (['--host', '0.0.0.0'], 'say with --auth who may'),
    (['--host', '0.0.0.0', '--auth', 'none'], 'say with --auth who may'),
    (['--host', '::', '--auth', 'none'], 'say with --auth who may'),
    (['--auth', 'some'], '--auth=some'),
    (['--auth', 'oidc'], '--oidc-issuer'),
    (['--auth', 'oidc', '--oidc-issuer', 'http://idp.example', '--oidc-client-id', 'x'], 'https'),
    (['--auth', 'header'], '--trusted-header'),
    (['--auth', 'iap'], '--iap-audience'),
    (['--auth', 'header', '--trusted-header', 'x', '--trusted-from', '10.0.0.0/33'], '10.0.0.0/33'),
    (['--auth', 'header', '--trusted-header', 'x', '--audit-log', '/nowhere/at/all'], '/nowhere/at/all'),
])
def test_a_start_that_would_let_anybody_in_is_refused(tmp_path, flags_, words):
    code, _, err = daemon.run_to_end('--logdir', tmp_path, '--port', '0', *flags_)
    assert code == 2 and words in err, err


def test_no_secret_is_in_a_log(server, idp, place):
    token = idp.token(BOB)
    server.get('/p/b/api/v1/runs', bearer(token))
    b = Browser(server)
    b.sign_in(idp, BOB)
    text = ''.join(server.lines) + open(place / 'audit', encoding='utf8').read()
    for secret in (token, b.cookies['xprofd-session'], fake_idp.SECRET, 'code+/', 'eyJ'):
        assert secret not in text
    assert os.stat(place / 'audit').st_mode & 0o077 == 0
