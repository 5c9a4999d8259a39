"""What the chart's files promise before anything renders them: the schema is strict and complete, the values
of each feature fit it, templates use values that exist, figures agree with the program's."""
import json
import os
import re

import jsonschema
import pytest
import yaml

from conftest import CHART, ROOT, VALUES, case, read

SCHEMA = json.loads(read('helm', 'xprofd', 'values.schema.json'))
DEFAULTS = yaml.safe_load(read('helm', 'xprofd', 'values.yaml'))
GIVEN = {'logdirs': ['gs://b/p'], 'rpcKey': {'existingSecret': 's'}}
TEMPLATES = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(CHART, 'templates')) for f in files]


def merged(base, over):
    """As helm lays values over the chart's own: maps are merged, the rest is replaced."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {k: merged(base[k], over[k]) if k in base and k in over else over.get(k, base.get(k))
            for k in {**base, **over}}


def complaints(values):
    return [e.message for e in jsonschema.Draft7Validator(SCHEMA).iter_errors(merged(DEFAULTS, values))]


def resolved(schema):
    while '$ref' in schema:
        schema = SCHEMA['definitions'][schema['$ref'].rpartition('/')[2]]
    return schema


def walk(schema, path=''):
    schema = resolved(schema)
    yield path, schema
    for name, below in schema.get('properties', {}).items():
        yield from walk(below, path + '.' + name)
    if isinstance(schema.get('items'), dict):
        yield from walk(schema['items'], path + '[]')


def test_the_schema_is_a_schema_and_the_defaults_lack_only_what_must_be_given():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert complaints({}) == []
    assert complaints(GIVEN) == []


def test_no_object_of_known_names_takes_others():
    for path, schema in walk(SCHEMA):
        if 'properties' in schema:
            assert schema.get('additionalProperties') is False, path


def test_schema_and_defaults_name_the_same_values():
    def names(schema, values, path=''):
        schema = resolved(schema)
        if not schema.get('properties') or not isinstance(values, dict):
            return
        known = set(schema['properties']) - {'global', 'fsGroupChangePolicy', 'supplementalGroups'}
        assert known == set(values), path
        for name in known:
            names(schema['properties'][name], values[name], path + '.' + name)
    names(SCHEMA, DEFAULTS)


@pytest.mark.parametrize('path', VALUES, ids=case)
def test_the_values_of_each_feature_fit_the_schema(path):
    with open(path, encoding='utf8') as f:
        assert complaints(yaml.safe_load(f)) == []


@pytest.mark.parametrize('wrong', [
    {'replicas': 3}, {'shard': {'replicsa': 3}}, {'shard': {'replicas': 0}}, {'shard': {'memory': '8G'}},
    {'shard': {'memory': 8}}, {'shard': {'budgetPercent': 95}}, {'drainSeconds': '30'}, {'logLevel': 'loud'},
    {'logdirs': 'gs://b'}, {'logdirs': ['relative']}, {'rpcKey': {'value': 'short'}}, {'extraArgs': ['-v']},
    {'ingress': {'enabled': True}}, {'gateway': {'enabled': True, 'hostnames': ['a.example']}},
    {'podSecurityContext': {'runAsUser': 0}}, {'podSecurityContext': {'privileged': True}},
    {'shard': {'autoscaling': {'queueWaiting': {'enabled': 'yes'}}}}, {'listenAddress': '127.0.0.1'},
    {'networkPolicy': {'egress': {'storageCIDRs': []}}}, {'image': {'digest': 'sha256:12'}},
    {'auth': {'mode': 'none'}}, {'auth': {'oidc': {'secret': 'in clear'}}}, {'auth': {'header': {'from': ['everywhere']}}},
    {'links': {'state': 'relative'}}, {'membership': 'gossip'},
    {'projects': {'table': {'Vision': {'roots': ['gs://b']}}}}, {'projects': {'table': {'v': {'roots': []}}}},
    {'projects': {'table': {'v': {'roots': ['gs://b'], 'viewers': ['everybody']}}}},
], ids=json.dumps)
def test_a_wrong_value_is_refused(wrong):
    assert complaints(wrong)


def test_templates_use_only_values_that_exist():
    known = {p for p, _ in walk(SCHEMA)}
    used = set()
    for path in TEMPLATES:
        with open(path, encoding='utf8') as f:
            used |= {(os.path.relpath(path, CHART), v) for v in re.findall(r'\.Values((?:\.\w+)+)', f.read())}
    assert len(used) > 50
    assert not [(f, v) for f, v in used if v not in known]


def test_every_value_is_used_somewhere():
    text = ''.join(open(p, encoding='utf8').read() for p in TEMPLATES)
    for path, schema in walk(SCHEMA):
        name = path.rpartition('.')[2]
        if path and '[]' not in path and 'properties' not in schema and not path.startswith('.podSecurityContext') \
                and name not in ('global', 'table'):
            assert re.search(r'\.%s\b' % name, text), path + ' is used by no template'


def test_versions_and_times_are_those_of_the_program():
    chart = yaml.safe_load(read('helm', 'xprofd', 'Chart.yaml'))
    assert chart['appVersion'] == re.search(r'project\(xprofd VERSION (\S+)', read('CMakeLists.txt')).group(1)
    drain_ms = int(re.search(r'#define DRAIN_MS (\d+)', read('server', 'main.c')).group(1))
    finish = re.search(r'"xprofd.finishSeconds" -\}\}(\d+)', read('helm', 'xprofd', 'templates', '_helpers.tpl')).group(1)
    assert int(finish) * 1000 == drain_ms


def test_flags_that_the_chart_gives_are_flags():
    flags = set(re.findall(r'\{"([a-z0-9-]+)",', read('server', 'options.c')))
    given = set()
    for name in ('_helpers.tpl', 'frontend/deployment.yaml', 'shard/statefulset.yaml'):
        given |= set(re.findall(r'[- "]--([a-z0-9-]+)(?:=|$)', read('helm', 'xprofd', 'templates', name), re.M))
    assert len(given) > 30
    assert given <= flags


def test_the_parts_of_the_control_plane_are_of_one_release():
    text = read('tests', 'helm', 'tools', 'kubernetes', 'go.mod')
    minor, patch = re.search(r'k8s.io/kubernetes v1\.(\d+)\.(\d+)', text).groups()
    staging = re.findall(r'=> k8s\.io/\S+ v0\.(\d+)\.(\d+)', text)
    assert len(staging) > 30 and set(staging) == {(minor, patch)}
