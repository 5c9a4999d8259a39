"""The profiles that are measured: found in --data, or made."""
import os
import shutil
import subprocess
import sys
import tempfile

# What ../shared/data/make_profile.py makes; the sizes of the published baseline.
RECIPES = {'syn50': ['--target-size', '50MB'], 'syn500': ['--target-size', '500MB'], 'syn2g': ['--target-size', '2GB'],
           'pod64': ['--hosts', '64', '--target-size', '30MB']}
# What our own generator makes.
OWN = {'gen20': ['--size', '20MB'], 'gen50': ['--size', '50MB'], 'gen500': ['--size', '500MB'],
       'genpy100': ['--size', '100MB', '--kind', 'python']}


class Missing(RuntimeError):
    pass


def run_dir(data, name):
    return os.path.join(data, 'plugins', 'profile', name)


def hosts(data, name):
    suffix = '.xplane.pb'
    try:
        names = os.listdir(run_dir(data, name))
    except OSError:
        return []
    return sorted(f[:-len(suffix)] for f in names if f.endswith(suffix))


def size(data, name):
    return sum(os.path.getsize(os.path.join(run_dir(data, name), h + '.xplane.pb')) for h in hosts(data, name))


def make(data, name, gen, shared):
    """Puts the profile into data if it is not there."""
    if hosts(data, name):
        return
    if name in OWN:
        cmd = [gen, '--out', data, '--run', name] + OWN[name]
    elif name in RECIPES and shared and os.path.exists(os.path.join(shared, 'data', 'make_profile.py')):
        cmd = [sys.executable, os.path.join(shared, 'data', 'make_profile.py'), '--out', data, '--run', name,
               '--python-events', '200'] + RECIPES[name]
    else:
        raise Missing('no profile %s below %s, and no way to make it here' % (name, run_dir(data, '')))
    done = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900, check=False)
    if done.returncode or not hosts(data, name):
        raise Missing('making %s failed: %s' % (name, done.stdout.decode('utf8', 'replace')[-500:]))


def warm(data, name):
    """Into the page cache, so that every server reads it from there."""
    for h in hosts(data, name):
        with open(os.path.join(run_dir(data, name), h + '.xplane.pb'), 'rb', buffering=0) as f:
            while f.read(1 << 24):
                pass


class Copy:
    """A log directory of hard links: what one measurement leaves behind never serves another."""

    def __init__(self, data, name, copies=1):
        self.dir = tempfile.mkdtemp(prefix='.bench-', dir=data)
        for i in range(copies):
            to = run_dir(self.dir, name if copies == 1 else '%s-%d' % (name, i))
            os.makedirs(to)
            for h in hosts(data, name):
                os.link(os.path.join(run_dir(data, name), h + '.xplane.pb'), os.path.join(to, h + '.xplane.pb'))

    def __enter__(self):
        return self.dir

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)
