"""The chart: what its files say without helm, and what helm makes of them where it is built
(`.ci/kubernetes_tools helm`; HELM names another)."""
import copy
import glob
import os
import subprocess
import sys

import pytest

try:
    import jsonschema  # noqa: F401
    import yaml
except ImportError as e:
    yaml, collect_ignore_glob = None, ['test_*.py']
    print('the chart is NOT tested: %s' % e, file=sys.stderr)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, 'helm', 'xprofd')
LOADER = yaml and getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
VALUES = sorted(glob.glob(os.path.join(CHART, 'ci', '*-values.yaml')))
# One of those that test_render.py validates for.
VERSION = '1.34.0'
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))


def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf8') as f:
        return f.read()


def case(path):
    return os.path.basename(path).replace('-values.yaml', '')


def helm_path():
    if os.environ.get('HELM'):
        return os.environ['HELM'], ''
    p = subprocess.run([os.path.join(ROOT, '.ci', 'kubernetes_tools'), '--path', 'helm'], capture_output=True, text=True)
    return p.stdout.strip(), p.stderr.strip()


class Helm:
    def __init__(self, path):
        self.path = path
        self.rendered = {}

    def run(self, *args):
        return subprocess.run([self.path, *args], capture_output=True, text=True, timeout=60, cwd=ROOT)

    def template(self, *args, version=VERSION):
        return self.run('template', 'rel', CHART, '--namespace', 'prod', '--kube-version', version, *args)

    def objects(self, *args, version=VERSION):
        """{(kind, name): object} of a rendering that must succeed; a copy, to be changed at will."""
        if (args, version) not in self.rendered:
            p = self.template(*args, version=version)
            assert p.returncode == 0, p.stderr
            self.rendered[args, version] = [o for o in yaml.load_all(p.stdout, Loader=LOADER) if o]
        found = copy.deepcopy(self.rendered[args, version])
        by_name = {(o['kind'], o['metadata']['name']): o for o in found}
        assert len(by_name) == len(found), 'two objects of one name'
        return by_name

    def of(self, name, *args, **kw):
        return self.objects('-f', os.path.join(CHART, 'ci', name + '-values.yaml'), *args, **kw)


@pytest.fixture(scope='session')
def helm():
    path, why = helm_path()
    if not path:
        pytest.skip('the chart was not rendered: ' + why)
    return Helm(path)
