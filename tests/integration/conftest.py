"""Starts the real server as a process. XPROFD names it (build/release/xprofd otherwise); the profile
generator lies beside it."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import daemon  # noqa: E402


@pytest.fixture(scope='session')
def make(tmp_path_factory):
    """make(run, *options, root=None): a log directory with that made-up run in it, and others."""
    shared = tmp_path_factory.mktemp('logs')

    def one(run, *options, root=None):
        root = str(root or shared)
        daemon.generate(root, run, *options)
        return root
    return one


@pytest.fixture
def start(request):
    """start(logdir, *flags): a running server, ended after the test."""
    running = []

    def one(*flags, **kw):
        running.append(daemon.Daemon(*flags, **kw))
        return running[-1]
    yield one
    for d in running:
        d.stop()


@pytest.fixture(scope='session')
def sample(tmp_path_factory):
    """A server with one sound profile: run 'sample', host 'host-0'."""
    root = str(tmp_path_factory.mktemp('sample'))
    daemon.generate(root, 'sample', '--steps', '12')
    d = daemon.Daemon('--logdir', root)
    d.root = root
    yield d
    d.stop()
