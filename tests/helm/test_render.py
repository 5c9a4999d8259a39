"""What helm makes of the chart: it lints, renders with the values of every feature, and fits the strict schemas of
three Kubernetes versions; the objects agree with each other, and the program takes the flags that pods give it."""
import json
import os
import re
import shutil
import subprocess
import time

import jsonschema
import pytest
import yaml

import daemon
from conftest import CHART, VALUES, case

VERSIONS = ('1.30.0', '1.34.0', '1.37.0')
# Kinds of others' APIs, whose schemas are not at hand.
FOREIGN = {'ExternalSecret', 'HTTPRoute', 'PodMonitor', 'PrometheusRule'}
KEY = '0123456789abcdef0123456789abcdef'


class Schemas:
    """Those that kubernetes-validate bundles; its own validate() reads all of them for each object."""

    def __init__(self, version):
        kubernetes_validate = pytest.importorskip('kubernetes_validate', reason='objects were not validated')
        from referencing import Registry, Resource
        self.folder = os.path.join(os.path.dirname(kubernetes_validate.__file__), 'kubernetes-json-schema',
                                   'v%s-local-strict' % version)
        assert os.path.isdir(self.folder), 'no schemas of ' + version
        self.registry = Resource.from_contents(self.load('_definitions')) @ Registry()
        self.known, self.sound = {}, set()

    def load(self, name):
        with open(os.path.join(self.folder, name + '.json'), encoding='utf8') as f:
            return json.load(f)

    def complaints(self, o):
        api = re.sub(r'^([^./]*)(?:\.[^/]*)?/', r'\1-', o['apiVersion'])
        name = '%s-%s' % (o['kind'].lower(), api)
        if name not in self.known:
            self.known[name] = jsonschema.Draft202012Validator(self.load(name), registry=self.registry)
        text = json.dumps(o, sort_keys=True)
        if text in self.sound:
            return []
        found = ['%s: %s' % ('.'.join(map(str, e.path)), e.message) for e in self.known[name].iter_errors(o)]
        if not found:
            self.sound.add(text)
        return found


@pytest.fixture(scope='module', params=VERSIONS)
def schemas(request):
    return request.param, Schemas(request.param)


def test_the_chart_lints(helm):
    for path in (p for p in VALUES if case(p) in ('minimal', 'login', 'monitoring')):
        p = helm.run('lint', '--strict', CHART, '-f', path, '--kube-version', VERSIONS[-1])
        assert p.returncode == 0, p.stdout + p.stderr


def test_every_feature_renders_and_fits_the_schemas(helm, schemas):
    """Templates do not ask for the version (the next test), so that one rendering is held against all schemas."""
    _, of = schemas
    kinds = set()
    for path in VALUES:
        for (kind, name), o in helm.objects('-f', path).items():
            kinds.add(kind)
            if kind not in FOREIGN:
                assert of.complaints(o) == [], '%s: %s %s' % (case(path), kind, name)
            if kind not in FOREIGN and kind != 'Pod':
                assert 'app.kubernetes.io/instance' in o['metadata'].get('labels', {}) or case(path) == 'placement'
    assert kinds >= FOREIGN | {'Deployment', 'StatefulSet', 'Service', 'HorizontalPodAutoscaler', 'Ingress', 'Secret',
                               'PodDisruptionBudget', 'NetworkPolicy', 'ServiceAccount', 'ConfigMap', 'Pod'}


def test_the_chart_is_the_same_for_each_version(helm, schemas):
    version, _ = schemas
    assert helm.of('monitoring', version=version) == helm.of('monitoring')
    for folder, _, files in os.walk(os.path.join(CHART, 'templates')):
        for name in files:
            with open(os.path.join(folder, name), encoding='utf8') as f:
                assert 'Capabilities' not in f.read(), name


def test_the_schemas_see_a_field_that_is_misspelt(helm, schemas):
    _, of = schemas
    o = helm.of('autoscaling')['HorizontalPodAutoscaler', 'rel-xprofd-shard']
    o['spec']['minReplicsa'] = o['spec'].pop('minReplicas')
    assert any('minReplicsa' in c for c in of.complaints(o))


GIVEN = {'logdirs': '{gs://b}', 'rpcKey.existingSecret': 's', 'auth.mode': 'iap', 'auth.iap.audience': '/projects/1'}


@pytest.mark.parametrize('change, word', [
    ({'logdirs': None}, 'logdirs or projects'),
    ({'rpcKey.existingSecret': None}, 'rpcKey'),
    ({'rpcKey.value': KEY}, 'rpcKey'),
    ({'projects.object': 'gs://b/p.json'}, 'not both'),
    ({'shard.memory': '256Mi', 'shard.budgetPercent': '70'}, 'too little'),
    ({'frontend.autoscaling.enabled': 'true', 'frontend.autoscaling.minReplicas': '20'}, 'minReplicas'),
    ({'frontend.allowHosts': '{%s}' % ','.join('h%d' % i for i in range(13))}, '16 names'),
    ({'shard.replicsa': '3'}, 'replicsa'),
    ({'auth.mode': None}, 'who may come in'),
    ({'auth.iap.audience': None}, 'auth.iap.audience'),
    ({'auth.mode': 'oidc'}, 'auth.oidc.issuer'),
    ({'auth.mode': 'oidc', 'auth.oidc.issuer': 'https://i'}, 'clientId'),
    ({'auth.mode': 'oidc', 'auth.oidc.issuer': 'https://i', 'auth.oidc.clientId': 'x'}, 'cookieKey'),
    ({'auth.mode': 'header'}, 'auth.header.name'),
    ({'links.state': 'gs://b/state'}, 'links'),
    ({'rpcKey.existingSecret': None, 'rpcKey.externalSecret.enabled': 'true'}, 'storeName'),
], ids=json.dumps)
def test_values_that_contradict_are_refused_with_a_sentence(helm, change, word):
    args = [a for k, v in {**GIVEN, **change}.items() if v for a in ('--set', '%s=%s' % (k, v))]
    p = helm.template(*args)
    assert p.returncode != 0 and word in p.stderr, p.stderr


def workloads(objects):
    return {o['spec']['template']['metadata']['labels']['app.kubernetes.io/component']: o for (k, _), o in objects.items()
            if k in ('Deployment', 'StatefulSet')}


def pod(o):
    return o['spec']['template']['spec']


def flags(o):
    """{flag: [values]} of a workload's container; its first argument, the role, is under ''."""
    role, *args = pod(o)['containers'][0]['args']
    found = {'': [role]}
    for a in args:
        name, _, value = a[2:].partition('=')
        found.setdefault(name, []).append(value)
    return found


def mebibytes(text):
    return int(text[:-2]) * (1024 if text.endswith('Gi') else 1)


@pytest.mark.parametrize('path', VALUES, ids=case)
def test_pods_may_do_little(helm, path):
    objects = helm.objects('-f', path)
    pods = {k: pod(o) for k, o in workloads(objects).items()}
    pods['test'] = objects['Pod', next(n for k, n in objects if k == 'Pod')]['spec']
    assert len(pods) == 3
    for kind, p in pods.items():
        # Whether it speaks to the API server.
        assert p['automountServiceAccountToken'] is (kind == 'frontend' and case(path) == 'endpoint-slices')
        assert p['securityContext']['runAsNonRoot'] is True and p['securityContext']['runAsUser'] > 0
        assert p['securityContext']['seccompProfile'] == {'type': 'RuntimeDefault'}
        assert not any(p.get(k) for k in ('hostNetwork', 'hostPID', 'hostIPC'))
        for c in p['containers']:
            s = c['securityContext']
            assert s['readOnlyRootFilesystem'] is True and s['allowPrivilegeEscalation'] is False
            assert s['capabilities'] == {'drop': ['ALL']} and not s.get('privileged')
            assert c['resources']['limits']['memory'] == c['resources']['requests']['memory']


@pytest.mark.parametrize('path', VALUES, ids=case)
def test_selectors_find_the_pods_they_mean(helm, path):
    objects = helm.objects('-f', path)
    labels = {k: o['spec']['template']['metadata']['labels'] for k, o in workloads(objects).items()}
    assert set(labels) == {'frontend', 'shard'}

    def match(selector):
        return {k for k, have in labels.items() if selector.items() <= have.items()}
    for (kind, name), o in objects.items():
        role = {'frontend', 'shard'} & set(name.split('-'))
        if kind == 'Service':
            assert match(o['spec']['selector']) == role
        elif kind in ('Deployment', 'StatefulSet', 'PodDisruptionBudget'):
            assert match(o['spec']['selector']['matchLabels']) == role
        elif kind == 'NetworkPolicy':
            assert match(o['spec']['podSelector']['matchLabels']) == role
        elif kind == 'HorizontalPodAutoscaler':
            t = o['spec']['scaleTargetRef']
            assert (t['kind'], t['name']) in objects
            assert 'replicas' not in objects[t['kind'], t['name']]['spec']


@pytest.mark.parametrize('path', VALUES, ids=case)
def test_times_and_memory_agree(helm, path):
    objects = helm.objects('-f', path)
    for kind, o in workloads(objects).items():
        f, p, c = flags(o), pod(o), pod(o)['containers'][0]
        drain = int(f['drain-seconds'][0])
        assert drain + 11 < p['terminationGracePeriodSeconds'] <= drain + 30
        ready = c['readinessProbe']
        assert ready['periodSeconds'] * ready['failureThreshold'] < drain
        assert {x['name']: x['containerPort'] for x in c['ports']} == {'http': int(f['port'][0]), 'admin': int(f['admin-port'][0])}
        if kind == 'shard':
            assert f['identity'] == ['$(POD_NAME)'] and c['env'][0]['name'] == 'POD_NAME'
            budget = int(f['memory-budget'][0].replace('MiB', ''))
            ahead = int(f['bucket-memory'][0].replace('MiB', ''))
            assert 0 < budget + ahead < 0.9 * mebibytes(c['resources']['limits']['memory'])
            assert budget > 0.5 * mebibytes(c['resources']['limits']['memory'])


@pytest.mark.parametrize('path', VALUES, ids=case)
def test_volumes_are_those_that_are_mounted(helm, path):
    for o in workloads(helm.objects('-f', path)).values():
        mounted = [m['name'] for m in pod(o)['containers'][0]['volumeMounts']]
        assert sorted(mounted) == sorted(v['name'] for v in pod(o)['volumes'])
        files = [v for values in flags(o).values() for v in values if v.startswith('/etc/')]
        places = [m['mountPath'] for m in pod(o)['containers'][0]['volumeMounts']]
        assert files and all(any(f.startswith(m + '/') for m in places) for f in files)
        assert all(any(f.startswith(m + '/') for f in files) for m in places if m.startswith('/etc/xprofd/'))


def test_frontends_look_for_the_shards_where_they_are(helm):
    objects = helm.of('placement')
    service = objects['Service', 'viewer-shard']
    both = workloads(objects)
    assert both['shard']['spec']['serviceName'] == 'viewer-shard'
    assert both['shard']['spec']['podManagementPolicy'] == 'Parallel'
    assert service['spec']['clusterIP'] == 'None' and service['spec']['publishNotReadyAddresses'] is False
    assert flags(both['frontend'])['shards'] == ['dns:viewer-shard.prod.svc.cluster.local:%d' % service['spec']['ports'][0]['port']]
    assert flags(both['frontend'])['logdir'] == flags(both['shard'])['logdir']


def test_frontends_that_watch_the_api_server_may_do_that_and_no_more(helm):
    objects = helm.of('endpoint-slices')
    both = workloads(objects)
    assert flags(both['frontend'])['shards'] == ['k8s:prod/rel-xprofd-shard:8792']
    assert objects['Role', 'rel-xprofd']['rules'] == [
        {'apiGroups': ['discovery.k8s.io'], 'resources': ['endpointslices'], 'verbs': ['get', 'list', 'watch']}]
    binding = objects['RoleBinding', 'rel-xprofd']
    assert binding['subjects'] == [{'kind': 'ServiceAccount', 'name': pod(both['frontend'])['serviceAccountName'], 'namespace': 'prod'}]
    assert binding['roleRef']['name'] == 'rel-xprofd'
    to = [r['to'] for r in objects['NetworkPolicy', 'rel-xprofd-frontend']['spec']['egress']]
    assert [{'ipBlock': {'cidr': '172.16.0.2/32'}}] in to
    assert not [k for k, _ in helm.of('minimal') if k in ('Role', 'RoleBinding')]


def test_secrets_are_files_and_never_flags(helm):
    objects = helm.of('login')
    p = pod(workloads(objects)['frontend'])
    assert {v['name']: (v['secret']['secretName'], v['secret']['items'][0]['key']) for v in p['volumes']} == {
        'rpc-key': ('xprofd-keys', 'rpc-key'), 'cookie-key': ('xprofd-keys', 'cookie-key'),
        'oidc-client-secret': ('xprofd-oidc', 'client-secret')}
    assert [v['name'] for v in pod(workloads(objects)['shard'])['volumes']] == ['rpc-key', 'scratch']
    f = flags(workloads(helm.of('key-in-values'))['frontend'])
    assert not [v for values in f.values() for v in values if KEY in v]


def test_one_external_secret_can_hold_all_keys(helm):
    objects = helm.of('external-secret')
    made = objects['ExternalSecret', 'xprofd-rpc-key']['spec']
    keys = {d['secretKey']: d['remoteRef'] for d in made['data']}
    assert keys['link-keys'] == {'key': 'xprofd-link-keys', 'property': 'keys'} and keys['cookie-key'] == {'key': 'xprofd-cookie-key'}
    volumes = {v['name']: v['secret'] for v in pod(workloads(objects)['frontend'])['volumes']}
    for name in ('rpc-key', 'cookie-key', 'link-keys'):
        assert volumes[name]['secretName'] == made['target']['name'] and volumes[name]['items'][0]['key'] in keys, name


def test_spans_and_access_lines_go_where_it_is_said(helm):
    objects = helm.of('monitoring')
    for kind, o in workloads(objects).items():
        given = flags(o)
        assert given['otlp-endpoint'] == ['http://collector.tracing:4318'] and given['trace-percent'] == ['5']
        assert given['access-log'] == ['-']
        rules = objects['NetworkPolicy', 'rel-xprofd-' + kind]['spec']['egress']
        assert [r['to'] for r in rules if [p['port'] for p in r['ports']] == [4318]] == [
            [{'namespaceSelector': {'matchLabels': {'kubernetes.io/metadata.name': 'tracing'}}}]]
    plain = helm.of('minimal')
    for kind, o in workloads(plain).items():
        assert not {'otlp-endpoint', 'access-log'} & set(flags(o))
        assert all(p['port'] != 4318 for r in plain['NetworkPolicy', 'rel-xprofd-' + kind]['spec']['egress'] for p in r['ports'])


def test_shards_are_reached_by_frontends_and_shards_alone(helm):
    policy = helm.of('monitoring')['NetworkPolicy', 'rel-xprofd-shard']['spec']
    work, admin = policy['ingress']
    assert [p['port'] for p in work['ports']] == [8792] and [p['port'] for p in admin['ports']] == [8793]
    assert {f['podSelector']['matchLabels']['app.kubernetes.io/component'] for f in work['from']} == {'frontend', 'shard'}
    assert all(set(f) == {'podSelector'} for f in work['from']), 'of this namespace only'
    assert admin['from'] == [{'namespaceSelector': {'matchLabels': {'kubernetes.io/metadata.name': 'monitoring'}}}]
    assert sorted(policy['policyTypes']) == ['Egress', 'Ingress']
    plain = helm.of('minimal')['NetworkPolicy', 'rel-xprofd-shard']['spec']
    assert len(plain['ingress']) == 1, 'nobody reads the admin port unless he is named'


@pytest.mark.parametrize('path', VALUES, ids=case)
def test_no_rule_of_a_policy_is_open_by_accident(helm, path):
    for (kind, name), o in helm.objects('-f', path).items():
        if kind == 'NetworkPolicy':
            assert all(r.get('to') and r.get('ports') for r in o['spec']['egress']), name
            for r in o['spec']['ingress']:
                assert r.get('from') or [p['port'] for p in r['ports']] == [8791], name


def test_shards_go_one_a_minute_after_ten_quiet_ones(helm):
    for o in (o for (k, _), o in helm.of('autoscaling').items() if k == 'HorizontalPodAutoscaler'):
        down = o['spec']['behavior']['scaleDown']
        assert down['stabilizationWindowSeconds'] == 600
        assert down['policies'] == [{'type': 'Pods', 'value': 1, 'periodSeconds': 60}]
        assert [m['type'] for m in o['spec']['metrics']] == ['Resource']
    shard = helm.of('autoscaling-metrics')['HorizontalPodAutoscaler', 'rel-xprofd-shard']['spec']
    assert [m['type'] for m in shard['metrics']] == ['Resource', 'Pods', 'Pods', 'External']


def test_names_of_routes_are_names_that_the_frontend_accepts(helm):
    for feature in ('ingress', 'gateway', 'tls'):
        assert 'xprofd.example.com' in flags(workloads(helm.of(feature))['frontend'])['allow-host']
    objects = helm.of('ingress')
    backend = objects['Ingress', 'rel-xprofd']['spec']['rules'][0]['http']['paths'][0]['backend']['service']
    assert backend['port']['name'] in [p['name'] for p in objects['Service', backend['name']]['spec']['ports']]


def test_a_changed_key_restarts_pods(helm):
    def annotations(value):
        objects = helm.of('key-in-values', '--set', 'rpcKey.value=' + value)
        return [o['spec']['template']['metadata'].get('annotations') for o in workloads(objects).values()]
    assert annotations(KEY) != annotations(KEY[::-1])


# --- the program ---

BY_HEADER = 'auth.mode=header,auth.header.name=x-user,auth.header.from={127.0.0.0/8}'
ANN = {'X-User': 'ann@example.com'}


def until_ready(front):
    """Answers of the admin port; a frontend has found its shard within seconds."""
    port, plain = int(re.search(r'health and metrics on port (\d+)', ''.join(front.lines)).group(1)), front.port
    front.port = port
    end = time.monotonic() + 20
    while front.get('/readyz').status != 200:
        assert time.monotonic() < end
        time.sleep(0.05)
    front.port = plain
    return port


def local(o, folder, **paths):
    """A pod's flags on this machine: the same, but for addresses, ports and places of files."""
    role, *args = pod(o)['containers'][0]['args']
    changed = {'host': '127.0.0.1', 'admin-port': 0, 'drain-seconds': 0, 'rpc-key': folder / 'key', 'logdir': folder, **paths}
    out = [role]
    for a in args:
        name = a[2:].partition('=')[0]
        if name != 'port':
            out.append('--%s=%s' % (name, changed[name]) if name in changed else a)
    return out


@pytest.fixture(scope='module')
def release(helm, tmp_path_factory):
    """(frontend, its rendered objects): a shard and a frontend with the flags of their pods."""
    folder = tmp_path_factory.mktemp('release')
    (folder / 'key').write_text(KEY + '\n')
    daemon.generate(folder, 'run', '--steps', '2')
    objects = helm.of('ingress', '--set', BY_HEADER)
    both = workloads(objects)
    shard = daemon.Daemon(*local(both['shard'], folder))
    front = daemon.Daemon(*local(both['frontend'], folder, shards='dns:localhost:%d' % shard.port))
    yield front, objects
    front.stop()
    shard.stop()


def test_the_program_takes_the_flags_of_its_pods(release):
    front, _ = release
    until_ready(front)
    assert front.api('tracks', ANN, run='run', host='host-0').status == 200
    assert front.api('runs').status == 401
    assert front.api('runs', {**ANN, 'Host': 'xprofd.example.com'}).status == 200
    assert front.api('runs', {**ANN, 'Host': 'rel-xprofd-frontend.prod.svc'}).status == 200
    assert front.api('runs', {**ANN, 'Host': 'elsewhere.example.com'}).status == 421


def test_probes_are_answered_without_a_known_name(release):
    front, objects = release
    port = until_ready(front)
    c = pod(workloads(objects)['frontend'])['containers'][0]
    for probe in ('startupProbe', 'livenessProbe', 'readinessProbe'):
        p = subprocess.run(['curl', '-s', '-o', os.devnull, '-w', '%{http_code}', '-H', 'Host: 10.1.2.3:8790',
                            'http://127.0.0.1:%d%s' % (port, c[probe]['httpGet']['path'])], capture_output=True, text=True)
        assert p.stdout == '200', probe


@pytest.mark.skipif(not shutil.which('curl'), reason='no curl')
def test_the_release_test_passes_on_a_frontend_and_fails_without(release):
    front, objects = release
    c = objects['Pod', 'rel-xprofd-test']['spec']['containers'][0]
    assert c['env'][0]['name'] == 'URL' and c['env'][0]['value'] == 'http://rel-xprofd-frontend.prod.svc:80'

    def ask(port):
        env = dict(os.environ, URL='http://127.0.0.1:%d' % port)
        script = c['command'][2].replace('--retry 5', '--retry 0')
        return subprocess.run(['sh', '-ec', script], env=env, capture_output=True, text=True, timeout=60)
    until_ready(front)
    good, bad = ask(front.port), ask(1)
    assert good.returncode == 0 and 'answers' in good.stdout, good
    assert bad.returncode != 0, bad


def test_a_table_of_projects_is_one_that_the_program_reads(helm, tmp_path):
    objects = helm.of('projects-table', '--set', BY_HEADER)
    table = json.loads(objects['ConfigMap', 'rel-xprofd-projects']['data']['projects.json'])
    daemon.generate(tmp_path, 'run', '--steps', '2')
    (tmp_path / 'key').write_text(KEY + '\n')
    for p in table['projects'].values():
        p['roots'] = [str(tmp_path)]
    path = tmp_path / 'projects.json'
    path.write_text(json.dumps(table))
    both = workloads(objects)
    shard = daemon.Daemon(*local(both['shard'], tmp_path, projects=path, **{'default-project': 'vision'}))
    front = daemon.Daemon(*local(both['frontend'], tmp_path, projects=path, shards='dns:localhost:%d' % shard.port))
    try:
        until_ready(front)
        assert [r['run'] if isinstance(r, dict) and 'run' in r else r for r in front.get('/p/vision/api/v1/runs', ANN).json()['runs']]
        assert front.get('/p/vision/api/v1/runs', {'X-User': 'eve@elsewhere.example'}).status == 404
    finally:
        front.stop()
        shard.stop()
