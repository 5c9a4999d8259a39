"""The profile generator: the same options make the same bytes, sizes are what was asked for."""
import gzip
import os
import resource
import subprocess

import daemon
import pytest
import xspace


def made(root, *options, host='host-0', ending=''):
    daemon.generate(root, 'run', *options)
    with open(daemon.profile(root, 'run', host) + ending, 'rb') as f:
        return f.read()


def test_the_same_options_make_the_same_bytes(tmp_path):
    one = made(tmp_path / 'a', '--steps', '5')
    assert made(tmp_path / 'b', '--steps', '5') == one
    assert made(tmp_path / 'c', '--steps', '5', '--seed', '2') != one
    assert gzip.decompress(made(tmp_path / 'd', '--steps', '5', '--gz', ending='.gz')) == one


@pytest.mark.parametrize('kind', ['mixed', 'tpu', 'python'])
def test_sizes_are_near_what_was_asked_for(tmp_path, kind):
    data = made(tmp_path, '--size', '20MB', '--kind', kind)
    assert 0.9 < len(data) / 20e6 < 1.1
    want = 400000 if kind == 'python' else 50000
    data = made(tmp_path, '--events', str(want), '--kind', kind)
    events = sum(len(line.events) for v in (v for f, v in xspace.fields(data) if f == 1) for line in xspace.Plane(v).lines)
    assert 0.7 < events / want < 1.3


def test_each_line_is_in_order_and_names_are_known(tmp_path):
    daemon.generate(tmp_path, 'run', '--steps', '3')
    planes = xspace.read(daemon.profile(tmp_path, 'run'))
    assert [p.name for p in planes][:2] == ['/device:TPU:0', '/device:TPU:1']
    for plane in planes:
        for line in plane.lines:
            assert all(m in plane.names for _, _, m in line.events), line.name
            if line.name != 'Async XLA Ops' and not line.name.startswith(('tf_data', 'EventFD')):
                assert line.events == sorted(line.events, key=lambda e: e[0]), line.name


def test_memory_does_not_grow_with_the_file(tmp_path):
    # A limit that a buffer of the whole file would pass.
    subprocess.run([os.path.join(daemon.BUILD, 'gen'), '--out', str(tmp_path), '--run', 'run', '--size', '150MB'], check=True,
                   stdout=subprocess.DEVNULL, timeout=60,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (120 << 20, 120 << 20)))
    assert os.path.getsize(daemon.profile(tmp_path, 'run')) > 130e6


@pytest.mark.parametrize('options', [['--size', 'x'], ['--steps', '0'], ['--hosts', '0'], ['--kind', 'nope'], ['--hostile', 'nope'],
                                     ['--size', '-1'], ['--what']])
def test_wrong_options_end_with_2(tmp_path, options):
    done = subprocess.run([os.path.join(daemon.BUILD, 'gen'), '--out', str(tmp_path), '--run', 'r', *options],
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, timeout=20, check=False)
    assert done.returncode == 2 and b'usage' in done.stderr
