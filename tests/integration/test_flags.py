"""The command line: what it refuses, with which exit code and sentence; ports; sources."""
import os
import re
import socket
import subprocess

import daemon
import pytest


def refused(*flags, word):
    code, out, err = daemon.run_to_end(*flags)
    assert code == 2, (code, out, err)
    text = out + err
    assert word in text and len(text.strip()) > 15, text
    assert 'Aborted' not in text and 'sanitizer' not in text.lower(), text


@pytest.mark.parametrize('flags,word', [
    (['--no-such-flag'], '--no-such-flag'),
    (['--logdir'], 'logdir'),
    ([], 'logdir'),
    (['--logdir', '.', '--port', 'x'], 'port'),
    (['--logdir', '.', '--port', '65536'], 'port'),
    (['--logdir', '.', '--port', '-1'], 'port'),
    (['--logdir', '.', '--threads', '0'], 'threads'),
    (['--logdir', '.', '--threads', '9999999999999999999999'], 'threads'),
    (['--logdir', '.', '--memory-budget', 'lots'], 'memory-budget'),
    (['--logdir', '.', '--memory-budget', '1'], 'memory-budget'),
    (['--logdir', '.', '--memory-budget', '-5MB'], 'memory-budget'),
    (['--logdir', '.', '--tls-cert', 'only-one.pem'], 'tls-key'),
])
def test_a_wrong_flag_is_named_and_ends_with_2(flags, word):
    refused(*flags, word=word)


def test_a_missing_logdir_is_named(tmp_path):
    refused('--logdir', tmp_path / 'nowhere', '--port', '0', word='nowhere')
    refused('--logdir', tmp_path / 'nowhere', '--port', '0', word='gs://BUCKET')
    refused('--logdir', 'abfs://somewhere', '--port', '0', word='s3://BUCKET')


def test_a_missing_certificate_is_named(tmp_path):
    refused('--logdir', tmp_path, '--port', '0', '--tls-cert', tmp_path / 'c.pem', '--tls-key', tmp_path / 'k.pem',
            word='--tls-cert: cannot read')


def test_a_wrong_path_is_named_with_its_flag(tmp_path):
    none, keys, short = tmp_path / 'none', tmp_path / 'keys', tmp_path / 'short'
    keys.write_text('0123456789abcdef0123456789abcdef\n')
    short.write_text('0123\n')
    common = ('--logdir', tmp_path, '--port', '0')
    refused(*common, '--link-keys', none, '--state', tmp_path, word='--link-keys: cannot open "%s"' % none)
    refused(*common, '--link-keys', short, '--state', tmp_path, word='--link-keys: a key is shorter')
    refused(*common, '--link-keys', keys, '--state', none, word='--state: cannot open')
    refused('shard', *common, '--rpc-key', none, word='--rpc-key: cannot open')
    refused('frontend', *common, '--shards', '127.0.0.1:1', '--rpc-key', none, word='--rpc-key: cannot open')
    refused('--logdir', none, '--port', '0', word='--logdir: cannot open')


def test_a_port_in_use_is_named(tmp_path):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        port = s.getsockname()[1]
        refused('--logdir', tmp_path, '--port', port, word=str(port))


def test_an_unusable_address_is_named(tmp_path):
    refused('--logdir', tmp_path, '--port', '0', '--host', '203.0.113.77', word='203.0.113.77')


def test_help_and_version_end_with_0():
    assert daemon.run_to_end('-h') == daemon.run_to_end('--help') and daemon.run_to_end('query', '-h')[0] == 0
    code, out, _ = daemon.run_to_end('--help')
    assert code == 0 and '--logdir' in out and '--memory-budget' in out and '--tls-cert' in out
    code, out, _ = daemon.run_to_end('--version')
    assert code == 0 and any(c.isdigit() for c in out)


def test_port_0_prints_the_port_it_got(start, tmp_path):
    d = start('--logdir', tmp_path)
    assert 0 < d.port < 65536
    assert d.api('runs').status == 200


def test_a_given_port_is_used(start, tmp_path):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    assert start('--logdir', tmp_path, port=port).port == port


def test_sigterm_ends_with_0(start, tmp_path):
    assert start('--logdir', tmp_path).stop() == 0


def test_it_listens_on_loopback_only(start, tmp_path):
    d = start('--logdir', tmp_path)
    with open('/proc/%d/net/tcp' % d.pid) as f:
        listening = [line.split()[1] for line in f if line.split()[3] == '0A']
    mine = [a for a in listening if int(a.split(':')[1], 16) == d.port]
    assert mine and all(a.startswith('0100007F') for a in mine)


def test_one_file_can_be_served(start, make):
    root = make('single', '--steps', '2')
    d = start('--logdir', daemon.profile(root, 'single'))
    runs = d.api('runs').json()['runs']
    assert len(runs) == 1 and runs[0]['hosts'] == 1
    tracks = d.loaded(runs[0]['run'])
    assert tracks.status == 200 and tracks.json()['events'] > 1000


def test_nothing_is_written_beside_the_profiles(start, make, tmp_path):
    root = make('untouched', '--steps', '2', root=tmp_path)
    before = sorted((r, sorted(d), sorted(f)) for r, d, f in os.walk(root))
    for folder, _, files in os.walk(root):
        for f in files:
            os.chmod(os.path.join(folder, f), 0o444)
        os.chmod(folder, 0o555)
    try:
        d = start('--logdir', root)
        assert d.loaded('untouched').status == 200
        assert d.trace('untouched', hosts='host-0', resolution=8000).status == 200
        assert d.compat('run_tools', run='untouched').status == 200
        assert d.compat('module_list', run='untouched').status == 200
        d.stop()
        assert sorted((r, sorted(d), sorted(f)) for r, d, f in os.walk(root)) == before
    finally:
        for folder, _, _ in os.walk(root):
            os.chmod(folder, 0o755)


def test_a_profile_as_the_only_argument_is_served(make):
    root = make('argument', '--steps', '1')
    p = subprocess.Popen([daemon.XPROFD, daemon.profile(root, 'argument'), '--port', '0'], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    try:
        line = p.stdout.readline().decode()
        while line and 'listening on' not in line:
            line = p.stdout.readline().decode()
        assert 'listening on http://127.0.0.1:' in line
    finally:
        p.terminate()
        p.wait(10)
        p.stdout.close()


def printed(*flags, env=None, file=None, tmp=None):
    """What --print-config tells: {option: [(value, source)]}"""
    if file is not None:
        (tmp / 'conf').write_text(file)
        flags = ('--config', tmp / 'conf', *flags)
    done = subprocess.run([daemon.XPROFD, *map(str, flags), '--print-config'], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=10, check=False, env=dict(os.environ, **(env or {})))
    if done.returncode:
        return done.returncode, done.stderr.decode()
    found = {}
    for line in done.stdout.decode().splitlines()[1:]:
        name, value, source = line.split()
        found.setdefault(name, []).append((value, source))
    return found


def test_flag_wins_over_environment_and_that_over_the_file(tmp_path):
    file = '# all\nport = 1\nthreads=2\n\n  memory-budget =  1GB \nlogdir = /a\nlogdir = /b\nallow-host = x\n'
    env = {'XPROFD_THREADS': '3', 'XPROFD_MEMORY_BUDGET': '2GB', 'XPROFD_ALLOW_HOST': 'y,z'}
    c = printed('--memory-budget', '3GB', env=env, file=file, tmp=tmp_path)
    assert c['port'] == [('1', 'file')]
    assert c['threads'] == [('3', 'environment')]
    assert c['memory-budget'] == [('3GB', 'flag')]
    assert c['logdir'] == [('/a', 'file'), ('/b', 'file')]
    assert c['allow-host'] == [('y', 'environment'), ('z', 'environment')]
    assert c['host'] == [('-', 'default')]
    assert printed('/c', env={'XPROFD_PORT': 'tcp://10.0.0.1:80'})['port'] == [('-', 'default')]  # of a Service
    c = printed('/c', file=file, tmp=tmp_path)
    assert c['logdir'] == [('-', 'default')]  # a bare word is the place; the file's are not added to it


def test_every_option_is_in_the_docs():
    page = ''
    for folder, _, files in [(daemon.ROOT, None, ['README.md']), *os.walk(os.path.join(daemon.ROOT, 'docs'))]:
        for name in (f for f in files if f.endswith('.md')):
            with open(os.path.join(folder, name), encoding='utf8') as f:
                page += f.read()
    _, text, _ = daemon.run_to_end('--help')
    options = set(re.findall(r'^ +--([a-z0-9-]+)', text, re.M)) - {'version'}
    assert len(options) > 50 and not [o for o in sorted(options) if not re.search(r'--%s\b' % o, page)]
    printed_ones = set(printed('/c')) - {'config'}
    assert printed_ones <= options and options - printed_ones <= {'help', 'config', 'print-config'}


def test_wrong_configuration_is_told_with_its_line(tmp_path):
    for file, words in (('x = 1\n', ':1: there is no such option'), ('\nport\n', ':2: a line is'),
                        ('port =\n', ':1: the value is missing'), ('config = x\n', ':1: there is no such'),
                        ('help = yes\n', ':1: there is no such'), ('port = z\n', '--port=z is not a number')):
        code, text = printed('/c', file=file, tmp=tmp_path)
        assert code == 2 and words in text, (file, text)
    (tmp_path / 'conf').write_bytes(b'port = 1\0\n')
    assert 'zero byte' in printed('--config', tmp_path / 'conf', '/c')[1]
    (tmp_path / 'conf').write_bytes(b'#' * 70000)
    assert '64 KiB' in printed('--config', tmp_path / 'conf', '/c')[1]
    assert 'cannot open' in printed('--config', tmp_path / 'none', '/c')[1]
    assert printed('/c', env={'XPROFD_PORT': 'no'})[0] == 2
