"""Profiles in a bucket: the server against fake_store.py, which can misbehave; and the same against
fake-gcs-server where that is installed, as a second opinion."""
import base64
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.request

import pytest

import daemon
import riegeli
import fake_store

CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith(('AWS_', 'GOOGLE_', 'GCE_', 'CLOUDSDK_', 'STORAGE_')) and not k.lower().endswith('_proxy')}


MEDIA = 'big.*alt=media'


def wait_for(what, limit=15):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(0.1)
    raise AssertionError('not within %d s' % limit)


@pytest.fixture(scope='module')
def profiles(tmp_path_factory):
    """A store with the bucket "pool": runs "small" and "big" (60 MB)."""
    root = str(tmp_path_factory.mktemp('buckets'))
    daemon.generate(os.path.join(root, 'pool'), 'small', '--steps', '4')
    daemon.generate(os.path.join(root, 'pool'), 'big', '--size', '60MB')
    return root


@pytest.fixture
def fake(profiles):
    f = fake_store.Fake(profiles, s3_id='AKID', s3_secret='the secret').start()
    yield f
    f.shutdown()
    f.server_close()


@pytest.fixture
def serve(start, tmp_path):
    """serve(fake, url='gs://pool', *flags, **env): a server that reads that bucket."""
    def one(fake, url='gs://pool', *flags, **env):
        env = dict(CLEAN, HOME=str(tmp_path), **(env or {'STORAGE_EMULATOR_HOST': fake.url}))
        return start('--logdir', url, *flags, env=env)
    return one


def runs(d):
    return {r['run']: r for r in d.api('runs').json()['runs']}


def window(d, run):
    return d.loaded(run).json()['events']


@pytest.fixture(scope='module')
def truth(profiles):
    """Events of the runs, as read from the disk."""
    d = daemon.Daemon('--logdir', os.path.join(profiles, 'pool'))
    yield {'small': window(d, 'small'), 'big': window(d, 'big'),
           'trace': d.trace('small', hosts='host-0').body, 'tracks': d.api('tracks', run='big', host='host-0').json()}
    d.stop()


@pytest.fixture(scope='module', autouse=True)
def stalled(profiles, truth):
    """A load whose first read stalls, begun before all other tests: it takes its time to be noticed."""
    f = fake_store.Fake(profiles).start()
    f.faults.set({'rules': [{'match': MEDIA, 'stall_after': 50000, 'seconds': 60, 'times': 1}]})
    d = daemon.Daemon('--logdir', 'gs://pool', env=dict(CLEAN, STORAGE_EMULATOR_HOST=f.url))
    threading.Thread(target=d.api, args=('tracks',), kwargs={'run': 'big', 'host': 'host-0'}, daemon=True).start()
    d.fake = f
    yield d
    d.stop()
    f.shutdown()
    f.server_close()


# --- it works ---

@pytest.mark.parametrize('kind', ['gs', 's3'])
def test_answers_are_those_of_a_directory(fake, serve, truth, kind):
    env = {'STORAGE_EMULATOR_HOST': fake.url} if kind == 'gs' else \
        {'AWS_ACCESS_KEY_ID': 'AKID', 'AWS_SECRET_ACCESS_KEY': 'the secret', 'AWS_REGION': 'eu-west-1'}
    d = serve(fake, kind + '://pool', '--s3-endpoint', fake.url, **env)
    assert set(runs(d)) == {'small', 'big'}
    assert window(d, 'small') == truth['small'] and window(d, 'big') == truth['big']
    assert d.trace('small', hosts='host-0').body == truth['trace']
    tracks = d.api('tracks', run='big', host='host-0').json()
    assert tracks['planes'] == truth['tracks']['planes']
    assert all(e['status'] < 300 for e in fake.calls('^/(storage|pool)'))


def test_a_prefix_is_a_place_of_its_own(fake, serve, truth):
    d = serve(fake, 'gs://pool/plugins/profile/small')
    (run,) = runs(d)
    assert run == 'small' and window(d, run) == truth['small']


def test_a_profile_is_transferred_once(fake, serve, profiles):
    size = os.path.getsize(daemon.profile(os.path.join(profiles, 'pool'), 'big'))
    d = serve(fake)
    window(d, 'big')
    sent = sum(e['sent'] for e in fake.calls('alt=media'))
    assert size <= sent < 1.15 * size, (size, sent)


def test_the_first_plane_is_there_before_all_is_read(fake, serve, profiles):
    fake.faults.set({'bandwidth': 3000000, 'latency_ms': 10})
    d = serve(fake)
    size = os.path.getsize(daemon.profile(os.path.join(profiles, 'pool'), 'big'))

    def first():
        t = d.api('tracks', run='big', host='host-0').json()
        return t if any(p['state'] == 'ready' and p['events'] for p in t.get('planes', [])) else None
    t = wait_for(first)
    assert t['loading'] and sum(e['sent'] for e in fake.calls('alt=media')) < size * 0.9


def test_many_runs_are_listed_in_few_calls_whatever_is_in_them(fake, serve, profiles, monkeypatch):
    """5,000 runs of 8 hosts, at 30 ms a call. They are names only: no disk has to hold them."""
    top, now = 'plugins/profile/', fake_store.now_iso(time.time() - 86400)
    names = sorted('2026_%02d_%02d_%02d_%02d_00' % (1 + i % 12, 1 + i // 12 % 28, i // 336, i % 60) for i in range(5000))
    inside = {'': ['plugins/'], 'plugins/': [top], top: [top + n + '/' for n in names]}
    monkeypatch.setattr(fake.store, 'level', lambda bucket, prefix: inside.get(prefix) or
                        [prefix + 'host-%d.xplane.pb' % h for h in range(8)])
    monkeypatch.setattr(fake.store, 'info', lambda bucket, name: {'name': name, 'size': '7', 'generation': '1', 'updated': now})
    os.makedirs(os.path.join(profiles, 'many'), exist_ok=True)
    fake.faults.set({'latency_ms': 30})
    d = serve(fake, 'gs://many')
    t = time.monotonic()
    page = d.api('runs').json()
    took = time.monotonic() - t
    assert page['total'] == 5000 and all(r['hosts'] == 8 for r in page['runs'])
    assert [r['run'] for r in page['runs']] == names[:-1 - len(page['runs']):-1]
    assert len(fake.calls('delimiter')) <= 3 + 5 + len(page['runs']) + 1
    assert took < 1.5, took


def test_field_masks_and_generations_are_sent(fake, serve):
    window(serve(fake), 'small')
    for e in fake.calls('/o\\?'):
        assert 'fields=items%28name%2Csize%2Cgeneration%2Cupdated%2CcontentEncoding%29%2Cprefixes%2CnextPageToken' in e['path']
        assert 'delimiter=%2F' in e['path']
    reads = fake.calls('alt=media')
    assert reads and all('generation=' in e['path'] and e['range'] for e in reads)


# --- sessions that change ---

def test_a_session_that_is_being_written_appears_and_grows(fake, serve, profiles):
    pool = os.path.join(profiles, 'pool')
    d = serve(fake)
    runs(d)
    daemon.generate(pool, 'late', '--steps', '1')
    try:
        wait_for(lambda: 'late' in runs(d))
        before = window(d, 'late')
        shutil.copy(daemon.profile(pool, 'late'), daemon.profile(pool, 'late', 'host-1'))
        wait_for(lambda: len(d.api('run', run='late').json()['hosts']) == 2)
        daemon.generate(pool, 'late', '--steps', '4')
        wait_for(lambda: window(d, 'late') > 2 * before)
    finally:
        shutil.rmtree(daemon.run_dir(pool, 'late'))


def test_a_profile_replaced_while_it_is_read_gives_one_content_or_stale(fake, serve, profiles, truth):
    pool = os.path.join(profiles, 'pool')
    os.makedirs(daemon.run_dir(pool, 'torn'))
    path = daemon.profile(pool, 'torn')
    shutil.copy(daemon.profile(pool, 'big'), path)
    fake.faults.set({'bandwidth': 2000000})
    d = serve(fake)
    try:
        assert d.api('tracks', run='torn', host='host-0').status in (200, 202)
        wait_for(lambda: fake.calls('torn.*alt=media'))
        shutil.copy(daemon.profile(pool, 'small'), path + '.tmp~')
        os.replace(path + '.tmp~', path)
        fake.faults.set({'bandwidth': 0})
        wait_for(lambda: d.loaded('torn').status == 200 and window(d, 'torn') == truth['small'])
    finally:
        shutil.rmtree(daemon.run_dir(pool, 'torn'))


def test_compressed_objects_are_known_by_their_encoding(fake, serve, profiles, truth):
    import gzip
    pool = os.path.join(profiles, 'pool')
    os.makedirs(daemon.run_dir(pool, 'packed'))
    with open(daemon.profile(pool, 'small'), 'rb') as f, gzip.open(daemon.profile(pool, 'packed'), 'wb', 1) as g:
        g.write(f.read())
    fake.store.encodings[('pool', 'plugins/profile/packed/host-0.xplane.pb')] = 'gzip'
    try:
        d = serve(fake)
        assert window(d, 'packed') == truth['small']
    finally:
        shutil.rmtree(daemon.run_dir(pool, 'packed'))


def test_records_in_a_bucket_are_a_profile(fake, serve, profiles, truth):
    pool = os.path.join(profiles, 'pool')
    os.makedirs(daemon.run_dir(pool, 'rieg'))
    with open(daemon.profile(pool, 'small'), 'rb') as f:
        riegeli.write(os.path.join(daemon.run_dir(pool, 'rieg'), 'host-0.xplane.riegeli'), [f.read()])
    try:
        assert window(serve(fake), 'rieg') == truth['small']
    finally:
        shutil.rmtree(daemon.run_dir(pool, 'rieg'))


# --- faults ---


@pytest.mark.parametrize('rules', [
    [{'match': MEDIA, 'status': 503, 'times': 3}],
    [{'match': MEDIA, 'status': 429, 'retry_after': '1', 'times': 2}],
    [{'match': MEDIA, 'status': 408, 'times': 2}],
    [{'match': MEDIA, 'drop': True, 'times': 3}],
    [{'match': MEDIA, 'reset_after': 100000, 'times': 3}],
    [{'match': MEDIA, 'short_after': 200000, 'times': 3}],
    [{'match': 'delimiter', 'status': 500, 'times': 3}, {'match': 'delimiter', 'drop': True, 'times': 1}],
], ids=['503', '429', '408', 'drop', 'reset', 'short', 'list'])
def test_faults_that_pass_are_not_noticed(fake, serve, truth, rules):
    fake.faults.set({'rules': rules})
    d = serve(fake)
    assert 'big' in runs(d)
    assert window(d, 'big') == truth['big']


def test_an_outage_of_reads_is_a_sentence_and_passes(fake, serve, truth):
    fake.faults.set({'rules': [{'match': 'small.*alt=media', 'status': 403, 'times': 99,
                                'body': 'x@y does not have storage.objects.get access to the object.'}]})
    d = serve(fake)
    reply = wait_for(lambda: (lambda r: r if r.status == 403 else None)(d.api('tracks', run='small', host='host-0')))
    detail = reply.json()['detail']
    for word in ('gs://pool/', 'small/host-0.xplane.pb', '403', 'storage.objects.get'):
        assert word in detail, detail
    fake.faults.clear()
    wait_for(lambda: d.api('tracks', run='small', host='host-0').status == 200)
    assert window(d, 'small') == truth['small']


def test_runs_stay_known_and_loaded_while_the_store_is_away(fake, serve, truth):
    d = serve(fake)
    assert window(d, 'small') == truth['small']
    fake.faults.set({'rules': [{'match': '.', 'status': 403, 'times': 999}]})
    time.sleep(4.5)
    assert 'small' in runs(d)
    assert d.api('window', run='small', host='host-0', px=800).status == 200


def test_leaving_ends_the_transfer_and_workers_stay_free(fake, serve):
    fake.faults.set({'bandwidth': 400000})
    d = serve(fake, 'gs://pool', '--threads', '1')
    assert d.api('tracks', run='big', host='host-0').status in (200, 202)
    for _ in range(5):
        assert d.api('runs').status == 200
    assert d.api('progress', run='big', host='host-0').json()['state'] not in ('ready', 'failed')  # there is one worker
    assert d.stop() == 0


# --- who we are ---

def pem():
    key = subprocess.run(['openssl', 'genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=60).stdout
    pub = subprocess.run(['openssl', 'pkey', '-pubout', '-outform', 'DER'], input=key, stdout=subprocess.PIPE,
                         check=True, timeout=60).stdout
    return key.decode(), pub


def unpad(s):
    return base64.urlsafe_b64decode(s + '=' * (-len(s) % 4))


def verify_jwt(jwt, pub, tmp_path):
    head, claims, sig = jwt.split('.')
    (tmp_path / 'pub.der').write_bytes(pub)
    (tmp_path / 'sig').write_bytes(unpad(sig))
    (tmp_path / 'text').write_bytes((head + '.' + claims).encode())
    subprocess.run(['openssl', 'dgst', '-sha256', '-verify', str(tmp_path / 'pub.der'), '-keyform', 'DER',
                    '-signature', str(tmp_path / 'sig'), str(tmp_path / 'text')], check=True, timeout=60,
                   stdout=subprocess.DEVNULL)
    return json.loads(unpad(head)), json.loads(unpad(claims))


def secrets_in(d):
    return [line for line in d.lines if re.search(r'token-\d|BEGIN|assertion|the secret', line)]


def test_the_metadata_server_is_asked_once_and_the_token_sent(fake, serve, truth):
    fake.faults.set({'need_auth': 'token'})
    d = serve(fake, 'gs://pool', '--gcs-endpoint', fake.url, '--log-level', 'debug',
              GCE_METADATA_HOST=fake.url.split('//')[1])
    assert window(d, 'big') == truth['big']
    assert len(fake.calls('computeMetadata')) == 1
    assert all(e['auth'] == 'Bearer token-1' for e in fake.calls('^/storage'))
    assert not secrets_in(d)


def test_a_token_is_renewed_before_it_ends_and_when_it_is_refused(fake, serve, truth):
    fake.faults.set({'need_auth': 'token'})
    fake.token_life = 4
    d = serve(fake, 'gs://pool', '--gcs-endpoint', fake.url, GCE_METADATA_HOST=fake.url.split('//')[1])
    assert window(d, 'small') == truth['small']
    time.sleep(2.5)
    assert window(d, 'big') == truth['big']
    assert fake.tokens >= 2
    assert not [e for e in fake.calls('^/storage') if e['status'] == 401]
    fake.token_life = 3600
    time.sleep(2)
    d.api('run', run='small')
    time.sleep(1.1)
    fake.token = 'another'  # all tokens were revoked
    assert d.api('run', run='big').status == 200
    codes = [e['status'] for e in fake.calls('^/storage')]
    assert codes[-1] == 200 and 1 <= codes.count(401) <= 2


def test_a_service_accounts_key_signs_a_claim(fake, serve, truth, tmp_path):
    key, pub = pem()
    (tmp_path / 'key.json').write_text(json.dumps({
        'type': 'service_account', 'client_email': 'reader@project.example', 'private_key': key,
        'private_key_id': 'k1', 'token_uri': fake.url + '/token'}))
    fake.faults.set({'need_auth': 'token'})
    d = serve(fake, 'gs://pool', '--gcs-endpoint', fake.url, '--log-level', 'debug',
              GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / 'key.json'))
    assert window(d, 'small') == truth['small']
    (ask,) = fake.calls('^/token')
    assert ask['form']['grant_type'] == 'urn:ietf:params:oauth:grant-type:jwt-bearer'
    head, claims = verify_jwt(ask['form']['assertion'], pub, tmp_path)
    assert head == {'alg': 'RS256', 'typ': 'JWT', 'kid': 'k1'}
    assert claims['iss'] == 'reader@project.example' and claims['aud'] == fake.url + '/token'
    assert claims['scope'] == 'https://www.googleapis.com/auth/devstorage.read_only'
    assert claims['exp'] - claims['iat'] == 3600 and abs(claims['iat'] - time.time()) < 60
    assert not secrets_in(d)


@pytest.mark.parametrize('other', [False, True], ids=['plain', 'impersonating'])
def test_workload_identity_trades_the_files_token(fake, serve, truth, tmp_path, other):
    (tmp_path / 'projected').write_text(json.dumps({'id_token': 'from-the-cluster'}))
    config = {'type': 'external_account', 'audience': '//iam.example/pool', 'token_url': fake.url + '/sts',
              'subject_token_type': 'urn:ietf:params:oauth:token-type:jwt',
              'credential_source': {'file': str(tmp_path / 'projected'),
                                    'format': {'type': 'json', 'subject_token_field_name': 'id_token'}}}
    if other:
        config['service_account_impersonation_url'] = fake.url + '/impersonate/x:generateAccessToken'
    (tmp_path / 'wif.json').write_text(json.dumps(config))
    fake.faults.set({'need_auth': 'token'})
    d = serve(fake, 'gs://pool', '--gcs-endpoint', fake.url, GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / 'wif.json'))
    assert window(d, 'small') == truth['small']
    (ask,) = fake.calls('^/sts')
    assert ask['form']['subject_token'] == 'from-the-cluster' and ask['form']['audience'] == '//iam.example/pool'
    assert len(fake.calls('^/impersonate')) == (1 if other else 0)


def test_without_credentials_nothing_is_sent(fake, serve, truth):
    fake.faults.set({'need_auth': 'none'})
    d = serve(fake, 'gs://pool', '--gcs-endpoint', fake.url, '--bucket-auth', 'none', NO_GCE_CHECK='1')
    assert window(d, 'small') == truth['small']


@pytest.mark.parametrize('flags,env,words', [
    (['gs://pool'], {'NO_GCE_CHECK': '1'}, 'no credentials for Cloud Storage'),
    (['s3://pool'], {'X': '1'}, 'AWS_ACCESS_KEY_ID'),
    (['gs://pool', '--gcs-endpoint', 'http://store.example'], {'GCE_METADATA_HOST': '127.0.0.1:1'}, 'https only'),
    (['gs://pool', '--gcs-endpoint', 'store.example'], {'X': '1'}, 'is no address'),
    (['gs://x'], {'X': '1'}, 'names no bucket'),
    (['gs://pool'], {'GOOGLE_APPLICATION_CREDENTIALS': '/no/such/file'}, 'cannot read the credentials'),
])
def test_what_cannot_work_is_said_at_the_start(tmp_path, flags, env, words):
    done = subprocess.run([daemon.XPROFD, '--port', '0', '--logdir', *flags], env=dict(CLEAN, HOME=str(tmp_path), **env),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False)
    assert done.returncode == 2 and words in done.stdout.decode(), done.stdout


def test_a_wrong_secret_is_refused_with_the_right_that_is_missing(fake, serve):
    d = serve(fake, 's3://pool', '--s3-endpoint', fake.url, AWS_ACCESS_KEY_ID='AKID', AWS_SECRET_ACCESS_KEY='wrong')
    found = json.dumps(d.api('runs').json())
    assert 's3:ListBucket is missing' in found and 'HTTP 403' in found


def test_a_stalled_read_is_asked_for_again(stalled, truth):
    """The last test but one: see the fixture."""
    assert window(stalled, 'big') == truth['big']
    assert stalled.fake.calls(MEDIA)[0]['sent'] <= 50000 and not stalled.fake.faults.rule('big.*alt=media')


# --- a second opinion ---

def fake_gcs_server():
    places = [os.environ.get('FAKE_GCS_SERVER'), shutil.which('fake-gcs-server'),
              os.path.join(os.environ.get('GOBIN') or os.path.expanduser('~/go/bin'), 'fake-gcs-server')]
    return next((p for p in places if p and os.path.exists(p)), None)


@pytest.mark.skipif(not fake_gcs_server(), reason='fake-gcs-server is not installed (FAKE_GCS_SERVER names it)')
def test_another_emulator_gives_the_same_answers(profiles, serve, truth, tmp_path):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    url = 'http://127.0.0.1:%d' % port
    proc = subprocess.Popen([fake_gcs_server(), '-scheme', 'http', '-host', '127.0.0.1', '-port', str(port), '-backend',
                             'memory', '-data', profiles, '-public-host', '127.0.0.1:%d' % port, '-external-url', url,
                             '-log-level', 'error'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def up():
        try:
            return urllib.request.urlopen(url + '/storage/v1/b', timeout=2).status == 200
        except OSError:
            return False
    try:
        wait_for(up, 30)
        d = serve(None, STORAGE_EMULATOR_HOST=url)
        assert {'small', 'big'} <= set(runs(d))
        assert window(d, 'small') == truth['small'] and window(d, 'big') == truth['big']
        assert d.trace('small', hosts='host-0').body == truth['trace']
    finally:
        proc.kill()
        proc.wait()
