"""Dashboard and alerts speak of metrics and labels that a running frontend and shard export."""
import json
import os
import re
import shutil
import subprocess

import pytest
import yaml

import daemon
import fake_store
from conftest import read

DASHBOARD = json.loads(read('helm', 'xprofd', 'dashboards', 'xprofd.json'))
ALERTS = yaml.safe_load(read('helm', 'xprofd', 'alerts', 'xprofd.yaml'))
RULES = [r for g in ALERTS['groups'] for r in g['rules']]
# What Prometheus adds to each sample of a pod.
ADDED = {'namespace', 'pod'}
METRIC = re.compile(r'\b((?:xprofd|process)_[a-z0-9_]+)')


def panels():
    return [p for p in DASHBOARD['panels'] if p['type'] != 'row']


def expressions():
    for p in panels():
        for t in p['targets']:
            yield p['title'], t['expr']
    for r in RULES:
        yield r['alert'], r['expr']
    for v in DASHBOARD['templating']['list']:
        if v['type'] == 'query':
            yield v['name'], v['query']


@pytest.fixture(scope='module')
def texts(tmp_path_factory):
    """What a shard and a frontend export that read a bucket."""
    folder = tmp_path_factory.mktemp('monitoring')
    key = folder / 'key'
    key.write_text('a key of more than sixteen bytes\n')
    daemon.generate(folder / 'pool', 'run', '--steps', '2')
    fake = fake_store.Fake(str(folder)).start()
    env = dict(os.environ, STORAGE_EMULATOR_HOST=fake.url)
    shard = daemon.Daemon('shard', '--logdir', 'gs://pool', '--rpc-key', key, '--admin-port', 0, env=env)
    front = daemon.Daemon('frontend', '--logdir', 'gs://pool', '--rpc-key', key, '--admin-port', 0,
                          '--shards', 'static:127.0.0.1:%d' % shard.port, '--link-keys', key, '--state', 'gs://pool/links', env=env)
    try:
        assert front.loaded('run').status == 200
        texts = [metrics_of(d) for d in (shard, front)]
    finally:
        front.stop()
        shard.stop()
        fake.shutdown()
        fake.server_close()
    return texts


@pytest.fixture(scope='module')
def exported(texts):
    """{metric: its labels}, of both roles; histograms with the names of their series."""
    text, found = ''.join(texts), {}
    for name, kind in re.findall(r'^# TYPE (\S+) (\S+)$', text, re.M):
        for n in ([name] if kind != 'histogram' else [name + s for s in ('_bucket', '_sum', '_count')]):
            found.setdefault(n, set())
    for name, labels in re.findall(r'^([a-z_]+)(?:\{(.*)\})? \S+$', text, re.M):
        found[name] |= set(re.findall(r'(\w+)="', labels))
    return found


def metrics_of(d):
    port = re.search(r'health and metrics on port (\d+)', ''.join(d.lines)).group(1)
    plain, d.port = d.port, int(port)
    text = d.get('/metrics').text()
    d.port = plain
    return text


def test_every_metric_that_is_shown_or_watched_is_exported(exported):
    for where, expr in expressions():
        for name in METRIC.findall(expr):
            assert name in exported, '%s: %s' % (where, name)


def test_every_label_that_is_asked_for_is_there(exported):
    for where, expr in expressions():
        for name, inside in re.findall(r'((?:xprofd|process)_[a-z0-9_]+)\{([^}]*)\}', expr):
            asked = set(re.findall(r'(\w+)(?:=~|!~|!=|=)', inside))
            assert asked - ADDED <= exported[name], '%s: %s' % (where, name)


def test_every_metric_has_the_namespace_of_the_release():
    for p in panels():
        for t in p['targets']:
            bare = re.sub(r'group_left \(\w*\) \w+', '', t['expr'])
            for m in METRIC.finditer(bare):
                assert bare[m.end():].startswith('{namespace="$namespace"'), p['title']
    for r in RULES:
        bare = re.sub(r'group_left \(\w*\) \w+', '', r['expr'])
        for m in METRIC.finditer(bare):
            assert bare[m.end():].startswith('{namespace="NAMESPACE"'), r['alert']


def test_panels_do_not_overlap_and_have_targets():
    taken = {}
    for p in DASHBOARD['panels']:
        g = p['gridPos']
        for y in range(g['y'], g['y'] + g['h']):
            for x in range(g['x'], g['x'] + g['w']):
                assert x < 24 and taken.setdefault((x, y), p['id']) == p['id'], p['title']
    assert len({p['id'] for p in DASHBOARD['panels']}) == len(DASHBOARD['panels'])
    assert all(p['targets'] for p in panels())


def test_counters_are_asked_for_their_rate():
    for where, expr in expressions():
        for m in re.finditer(r'\w+_total\{[^}]*\}(\[)?', expr):
            assert m.group(1), where
            assert re.search(r'(rate|increase)\($', expr[:m.start()]), where


def test_alerts_have_a_summary_a_severity_and_a_word_in_the_docs():
    page = read('docs', 'kubernetes.md')
    for r in RULES:
        assert r['labels']['severity'] in ('warning', 'critical')
        assert r['annotations']['summary'].endswith('.')
        assert r['alert'] in page


def test_calls_to_buckets_are_counted_in_both_roles(texts):
    for text, kind, status in zip(texts, ('read', 'list'), (206, 200)):
        assert re.search(r'^xprofd_store_calls_total{kind="%s",status="%d"} [1-9]' % (kind, status), text, re.M)
        assert re.search(r'^xprofd_store_call_seconds_count{kind="%s"} [1-9]' % kind, text, re.M)
        assert re.search(r'^xprofd_store_read_bytes_total [1-9]', text, re.M)


def test_every_metric_is_in_the_catalogue(exported):
    page = read('docs', 'operations.md').split('| metric |')[1].split('\n\n')[0]
    known = set(re.findall(r'`(\w+)', page))
    assert {re.sub('_(bucket|sum|count)$', '', name) for name in exported} <= known


PROMTOOL = pytest.mark.skipif(not shutil.which('promtool'),
                              reason="no promtool (Debian's prometheus): metrics and expressions were not held against it")


@PROMTOOL
def test_prometheus_has_no_complaint_about_the_metrics(texts):
    for text in texts:
        p = subprocess.run(['promtool', 'check', 'metrics'], input=text, capture_output=True, text=True, timeout=30)
        assert p.returncode == 0 and not p.stdout + p.stderr, p.stdout + p.stderr


@PROMTOOL
def test_prometheus_can_read_every_expression(tmp_path):
    stand_ins = (('$__rate_interval', '1m'), ('$namespace', 'x'), ('$route', '.*'))
    rules = []
    for p in panels():
        for t in p['targets']:
            expr = t['expr']
            for name, value in stand_ins:
                expr = expr.replace(name, value)
            rules.append({'record': 'panel:%d' % len(rules), 'expr': expr})
    path = tmp_path / 'rules.yaml'
    path.write_text(yaml.safe_dump({'groups': [*ALERTS['groups'], {'name': 'dashboard', 'rules': rules}]}))
    p = subprocess.run(['promtool', 'check', 'rules', str(path)], capture_output=True, text=True, timeout=30)
    assert p.returncode == 0, p.stdout + p.stderr
