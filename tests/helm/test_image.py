"""The Dockerfile's last stage holds what the binary needs and no more."""
import os
import re
import shutil
import subprocess

import pytest

import daemon
from conftest import ROOT, read

DOCKERFILE = read('Dockerfile')
LAST = DOCKERFILE.rpartition('\nFROM ')[2]


def installed():
    listed = re.search(r'apt-get install [^\\]*\\\n(.*?)&&', LAST, re.S).group(1)
    return set(re.sub(r'\\\n', ' ', listed).split())


def packages_of_libraries():
    """{package: library} of what the binary names itself; what those need is apt's matter."""
    p = subprocess.run(['readelf', '-d', daemon.XPROFD], check=True, capture_output=True, text=True)
    needed = set(re.findall(r'\(NEEDED\).*\[(.*?)\]', p.stdout))
    where = dict(re.findall(r'^\s*(\S+) => (\S+)', subprocess.run(
        ['ldd', daemon.XPROFD], check=True, capture_output=True, text=True).stdout, re.M))
    assert len(needed) > 8
    found = {}
    for name in needed:
        if name.startswith('ld-linux'):
            continue
        path = os.path.realpath(where[name])
        for candidate in (path, re.sub('^/usr/', '/', path)):
            p = subprocess.run(['dpkg', '-S', candidate], capture_output=True, text=True)
            if p.returncode == 0:
                break
        assert p.returncode == 0, path + ' is of no package'
        found[p.stdout.split(':')[0]] = name
    return found


@pytest.mark.skipif(not shutil.which('dpkg') or not shutil.which('readelf'), reason='not a Debian machine')
def test_the_image_has_each_library_that_the_binary_names_and_no_other():
    owners = packages_of_libraries()
    base = {'libc6', 'libgcc-s1', 'libstdc++6'}
    assert set(owners) - base <= installed(), 'add to the Dockerfile'
    # libcjose0: what signs in; the linker leaves it out of a build that does not call it.
    assert installed() - set(owners) <= {'ca-certificates', 'libcjose0'}, 'drop from the Dockerfile'


def test_the_image_is_built_by_the_script_that_sets_up_machines():
    build = DOCKERFILE.rpartition('\nFROM ')[0]
    assert 'RUN .ci/install --build' in build
    assert 'cmake --preset release' in build
    assert 'apt-get' not in build


def test_what_runs_is_not_root_and_needs_no_shell():
    assert re.search(r'^USER 65532:65532$', LAST, re.M)
    assert re.search(r'^ENTRYPOINT \["/usr/bin/xprofd"\]$', LAST, re.M)
    values = read('helm', 'xprofd', 'values.yaml')
    assert 'runAsUser: 65532' in values
    assert 'exec:' not in read('helm', 'xprofd', 'templates', '_helpers.tpl')


def test_the_release_is_that_of_the_install_script():
    """One Debian release in both stages, the one that .ci/install is for."""
    assert set(re.findall(r'^FROM debian:(\d+)', DOCKERFILE, re.M)) == {'12'}
    assert 'Debian 12' in read('.ci', 'install')


def test_the_context_leaves_out_what_is_made_here():
    ignored = read('.dockerignore').split()
    assert {'.git', 'build', '.venv', '**/node_modules'} <= set(ignored)
    for path in ('server', 'lib', 'shard', 'web', 'proto', 'cmake', '.ci', 'CMakeLists.txt'):
        assert path not in ignored and os.path.exists(os.path.join(ROOT, path))
