#!/usr/bin/env python3
"""Installs the chart into a real control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler as
plain processes on loopback, with kwok in place of kubelets (pods become ready, no container runs) and with metrics
of our own making, by which the real autoscaler decides. .ci/kubernetes names the programs in the environment.

Prints a line a check, 'N passed, N failed' at the end."""
import glob
import http.server
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, 'helm', 'xprofd')
NAMESPACE = 'profiles'
TOKEN = 'a-token-of-this-run'
FOREIGN = {'ExternalSecret', 'HTTPRoute', 'PodMonitor', 'PrometheusRule'}
START_S = 90
STEP_S = 60


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def until(what, limit=STEP_S, every=0.25):
    """The first true value of what(); fails after limit seconds."""
    end = time.monotonic() + limit
    while True:
        try:
            value, why = what(), ''
        except (OSError, KeyError) as e:
            value, why = None, repr(e)
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError('not within %d s %s' % (limit, why))
        time.sleep(every)


class Metrics(http.server.ThreadingHTTPServer):
    """metrics.k8s.io and custom.metrics.k8s.io for the pods that there are, with the figures of `values`."""
    daemon_threads = True

    def __init__(self, plane, cert, key):
        self.plane = plane
        # CPU in millicores by component, other metrics by name: the same for each pod.
        self.cpu, self.custom = {'frontend': 10, 'shard': 10}, {}
        super().__init__(('127.0.0.1', free_port()), Answers)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def do_GET(self):
        path, _, query = self.path.partition('?')
        parts = path.strip('/').split('/')  # apis GROUP VERSION namespaces NS pods [* METRIC]
        group, version = (parts + ['', '', ''])[1:3]
        if len(parts) == 3:
            name = 'pods' if group == 'metrics.k8s.io' else 'pods/any'
            kind = 'PodMetrics' if group == 'metrics.k8s.io' else 'MetricValueList'
            self.answer({'kind': 'APIResourceList', 'apiVersion': 'v1', 'groupVersion': group + '/' + version,
                         'resources': [{'name': name, 'singularName': '', 'namespaced': True, 'kind': kind, 'verbs': ['get', 'list']}]})
        elif len(parts) >= 6:
            self.answer(self.figures(group, version, parts, query))
        else:
            self.answer({'kind': 'Status', 'status': 'Failure', 'code': 404}, 404)

    def figures(self, group, version, parts, query):
        server, now = self.server, time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
        selector = ''.join('&' + q for q in query.split('&') if q.startswith('labelSelector='))
        pods = server.plane.get('/api/v1/namespaces/%s/pods?limit=500%s' % (parts[4], selector))['items']
        items = []
        for p in pods:
            meta = p['metadata']
            if group == 'metrics.k8s.io':
                cpu = server.cpu[meta['labels']['app.kubernetes.io/component']]
                items.append({'metadata': {k: meta[k] for k in ('name', 'namespace', 'labels')}, 'timestamp': now, 'window': '1s',
                              'containers': [{'name': 'xprofd', 'usage': {'cpu': '%dm' % cpu, 'memory': '64Mi'}}]})
            else:
                items.append({'describedObject': {'kind': 'Pod', 'namespace': meta['namespace'], 'name': meta['name'], 'apiVersion': 'v1'},
                              'metric': {'name': parts[7]}, 'timestamp': now, 'value': server.custom.get(parts[7], '0')})
        kind = 'PodMetricsList' if group == 'metrics.k8s.io' else 'MetricValueList'
        return {'kind': kind, 'apiVersion': group + '/' + version, 'metadata': {}, 'items': items}

    def answer(self, body, status=200):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Plane:
    def __init__(self, folder):
        self.folder, self.running = folder, []
        self.port = free_port()
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.config = self.file('kubeconfig', yaml.safe_dump({
            'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'here',
            'clusters': [{'name': 'here', 'cluster': {'server': 'https://127.0.0.1:%d' % self.port, 'insecure-skip-tls-verify': True}}],
            'users': [{'name': 'admin', 'user': {'token': TOKEN}}],
            'contexts': [{'name': 'here', 'context': {'cluster': 'here', 'user': 'admin', 'namespace': NAMESPACE}}]}))

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf8') as f:
            f.write(text)
        return path

    def start(self, name, *args):
        log = open(os.path.join(self.folder, name + '.log'), 'wb')
        program = os.environ[name.upper().replace('-', '_')]
        self.running.append((name, subprocess.Popen([program, *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)))
        log.close()

    def stop(self):
        for _, p in reversed(self.running):
            p.send_signal(signal.SIGTERM)
        for _, p in reversed(self.running):
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def ask(self, path, method='GET', body=None):
        request = urllib.request.Request('https://127.0.0.1:%d%s' % (self.port, path), method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={'Authorization': 'Bearer ' + TOKEN, 'Content-Type': 'application/json'})
        with urllib.request.urlopen(request, context=self.tls, timeout=20) as r:
            return r.read()

    def get(self, path):
        return json.loads(self.ask(path))

    def start_api(self):
        f = self.folder
        client, peer = free_port(), free_port()
        subprocess.run(['openssl', 'genrsa', '-out', f + '/sa.key', '2048'], check=True, capture_output=True)
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost',
                        '-keyout', f + '/metrics.key', '-out', f + '/metrics.crt'], check=True, capture_output=True)
        tokens = self.file('tokens', '%s,admin,1,"system:masters"\n' % TOKEN)
        self.start('etcd', '--data-dir', f + '/etcd', '--unsafe-no-fsync', '--listen-client-urls', 'http://127.0.0.1:%d' % client,
                   '--advertise-client-urls', 'http://127.0.0.1:%d' % client, '--listen-peer-urls', 'http://127.0.0.1:%d' % peer,
                   '--initial-advertise-peer-urls', 'http://127.0.0.1:%d' % peer, '--initial-cluster', 'default=http://127.0.0.1:%d' % peer)
        self.start('kube-apiserver', '--etcd-servers=http://127.0.0.1:%d' % client, '--cert-dir=' + f + '/api',
                   '--secure-port=%d' % self.port, '--bind-address=127.0.0.1', '--advertise-address=127.0.0.1', '--token-auth-file=' + tokens,
                   '--authorization-mode=RBAC', '--service-account-issuer=https://127.0.0.1:%d' % self.port,
                   '--service-account-key-file=' + f + '/sa.key', '--service-account-signing-key-file=' + f + '/sa.key',
                   '--service-cluster-ip-range=10.0.0.0/24', '--allow-privileged=true')
        until(lambda: self.ask('/readyz') == b'ok', START_S)

    def start_rest(self):
        f = self.folder
        self.start('kube-controller-manager', '--kubeconfig=' + self.config, '--service-account-private-key-file=' + f + '/sa.key',
                   '--use-service-account-credentials=false', '--leader-elect=false', '--bind-address=127.0.0.1',
                   '--secure-port=%d' % free_port(), '--cert-dir=' + f + '/manager', '--horizontal-pod-autoscaler-sync-period=1s',
                   '--horizontal-pod-autoscaler-initial-readiness-delay=1s', '--horizontal-pod-autoscaler-cpu-initialization-period=1s')
        self.start('kube-scheduler', '--kubeconfig=' + self.config, '--leader-elect=false', '--bind-address=127.0.0.1',
                   '--secure-port=%d' % free_port(), '--cert-dir=' + f + '/scheduler')
        stages = [a for s in sorted(glob.glob(os.environ['KWOK_STAGES'] + '/*.yaml')) for a in ('--config', s)]
        self.start('kwok', '--kubeconfig=' + self.config, '--manage-all-nodes=true', '--server-address=127.0.0.1:%d' % free_port(), *stages)

    def kubectl(self, *args, text=None):
        return subprocess.run(['kubectl', '--kubeconfig', self.config, *args], input=text, capture_output=True, text=True, timeout=120)

    def helm(self, *args):
        return subprocess.run([os.environ['HELM'], '--kubeconfig', self.config, '--namespace', NAMESPACE, *args], capture_output=True,
                              text=True, timeout=240, env=dict(os.environ, HOME=self.folder, KUBECONFIG=self.config))

    def apply(self, *objects):
        p = self.kubectl('apply', '-f', '-', text='---\n'.join(yaml.safe_dump(o) for o in objects))
        assert p.returncode == 0, p.stderr

    def add_nodes(self):
        size = {'cpu': '64', 'memory': '256Gi', 'pods': '200'}
        self.apply(*[{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {
            'name': 'node-%d' % i, 'annotations': {'kwok.x-k8s.io/node': 'fake'},
            'labels': {'kubernetes.io/hostname': 'node-%d' % i, 'topology.kubernetes.io/zone': 'zone-%d' % (i % 2)}},
            'status': {'capacity': size, 'allocatable': size}} for i in range(4)])

    def add_metrics(self):
        metrics = Metrics(self, self.folder + '/metrics.crt', self.folder + '/metrics.key')
        service = {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 'metrics', 'namespace': 'kube-system'},
                   'spec': {'type': 'ExternalName', 'externalName': 'localhost', 'ports': [{'port': metrics.server_port}]}}
        apis = [{'apiVersion': 'apiregistration.k8s.io/v1', 'kind': 'APIService', 'metadata': {'name': '%s.%s' % (version, group)},
                 'spec': {'group': group, 'version': version, 'groupPriorityMinimum': 100, 'versionPriority': 100, 'insecureSkipTLSVerify': True,
                          'service': {'name': 'metrics', 'namespace': 'kube-system', 'port': metrics.server_port}}}
                for group, version in (('metrics.k8s.io', 'v1beta1'), ('custom.metrics.k8s.io', 'v1beta2'))]
        self.apply(service, *apis)
        return metrics


class Checks:
    """In order; each may rest on those before it."""

    def __init__(self, plane, metrics):
        self.plane, self.metrics = plane, metrics

    def list(self, group, kind):
        return self.plane.get('%s/namespaces/%s/%s' % (group, NAMESPACE, kind))['items']

    def named(self, group, kind, name):
        return self.plane.get('%s/namespaces/%s/%s/%s' % (group, NAMESPACE, kind, name))

    def replicas(self, of='shard'):
        kind = {'shard': 'statefulsets', 'frontend': 'deployments'}[of]
        return self.named('/apis/apps/v1', kind, 'rel-xprofd-' + of)['spec']['replicas']

    def sizes_since(self, version):
        """How many shards there were to be, one change after the other: the server keeps them, however busy we are."""
        path = '/apis/apps/v1/namespaces/%s/statefulsets?watch=1&timeoutSeconds=2&fieldSelector=metadata.name%%3D%s&resourceVersion=%s'
        sizes = [6]
        for line in self.plane.ask(path % (NAMESPACE, 'rel-xprofd-shard', version)).splitlines():
            now = json.loads(line)['object']['spec']['replicas']
            if now != sizes[-1]:
                sizes.append(now)
        return sizes

    def helm(self, *args):
        p = self.plane.helm(*args)
        assert p.returncode == 0, p.stdout + p.stderr
        return p.stdout

    def check_the_server_accepts_every_feature_strictly(self):
        ours = []
        for path in sorted(glob.glob(CHART + '/ci/*-values.yaml')):
            case = os.path.basename(path).replace('-values.yaml', '')
            rendered = self.helm('template', case, CHART, '--kube-version', '1.36.0', '-f', path)
            ours += [o for o in yaml.safe_load_all(rendered) if o and o['kind'] not in FOREIGN]
        assert len(ours) > 150
        p = self.plane.kubectl('apply', '--dry-run=server', '--validate=strict', '-n', NAMESPACE, '-f', '-', text=yaml.safe_dump_all(ours))
        assert p.returncode == 0, p.stderr
        assert 'PodSecurity' not in p.stderr, p.stderr

    def check_the_server_would_see_a_misspelt_field(self):
        rendered = self.helm('template', 'rel', CHART, '--kube-version', '1.36.0', '-f', CHART + '/ci/minimal-values.yaml')
        wrong = rendered.replace('podManagementPolicy', 'podManagmentPolicy')
        p = self.plane.kubectl('apply', '--dry-run=server', '--validate=strict', '-n', NAMESPACE, '-f', '-', text=wrong)
        assert p.returncode != 0 and 'podManagmentPolicy' in p.stderr, p.stderr

    def check_it_installs_and_becomes_ready(self):
        notes = self.helm('install', 'rel', CHART, '--wait', '--timeout', '2m', '-f', CHART + '/ci/key-in-values-values.yaml',
                          '-f', self.plane.file('scaling.yaml', SCALING))
        assert 'Shards: 2 to 6, 4915 MiB of 8Gi' in notes, notes
        # One of each at first: the autoscaler knows the least number, and begins a moment later.
        until(lambda: [p['status']['phase'] for p in self.list('/api/v1', 'pods')] == ['Running'] * 4)

    def check_frontends_alone_have_a_token(self):
        for p in self.list('/api/v1', 'pods'):
            assert any('projected' in v for v in p['spec']['volumes']) == ('-frontend-' in p['metadata']['name']), p['metadata']['name']

    def check_the_token_is_good_for_endpoint_slices_alone(self):
        for verb, what, yes in (('list', 'endpointslices.discovery.k8s.io', True), ('watch', 'endpointslices.discovery.k8s.io', True),
                                ('delete', 'endpointslices.discovery.k8s.io', False), ('get', 'secrets', False), ('list', 'pods', False)):
            p = self.plane.kubectl('auth', 'can-i', verb, what, '--as=system:serviceaccount:%s:rel-xprofd' % NAMESPACE)
            assert p.stdout.strip() == ('yes' if yes else 'no'), (verb, what, p.stdout)

    def watch_with(self, account):
        """The log of a real frontend that watches with that account's token, once it has said how it goes."""
        folder = os.path.join(self.plane.folder, account)
        os.makedirs(folder)
        token = self.plane.kubectl('create', 'token', account)
        assert token.returncode == 0, token.stderr
        shutil.copy(self.plane.folder + '/api/apiserver.crt', folder + '/ca.crt')
        for name, text in (('token', token.stdout), ('namespace', NAMESPACE), ('key', 'a key of more than sixteen bytes\n')):
            self.plane.file(os.path.join(account, name), text)
        env = dict(os.environ, XPROFD_SERVICEACCOUNT=folder, KUBERNETES_SERVICE_HOST='127.0.0.1', KUBERNETES_SERVICE_PORT=str(self.plane.port))
        log = folder + '/log'
        with open(log, 'wb') as f:
            p = subprocess.Popen([os.environ['XPROFD'], 'frontend', '--logdir', folder, '--rpc-key', folder + '/key', '--port', '0',
                                  '--shards', 'k8s:%s/rel-xprofd-shard:8792' % NAMESPACE], stdin=subprocess.DEVNULL, stdout=f, stderr=f, env=env)
        try:
            def watched():
                path = '/metrics'
                lines = [x for x in self.plane.ask(path).decode().splitlines() if x.startswith('apiserver_longrunning_requests{')]
                return sum(float(x.rsplit(' ', 1)[1]) for x in lines if 'resource="endpointslices"' in x and 'verb="WATCH"' in x)
            before = watched()
            end = time.monotonic() + STEP_S
            while time.monotonic() < end and p.poll() is None:
                time.sleep(0.2)
                if (account != 'default' and watched() > before) or b'endpointslices' in open(log, 'rb').read():
                    break
            return watched() - before, open(log, encoding='utf8').read()
        finally:
            p.terminate()
            p.wait(20)

    def check_a_frontend_watches_with_that_token_and_says_so_without(self):
        if not os.path.exists(os.environ.get('XPROFD', '')):
            print('        no build of xprofd: it was not tried against the API server')
            return
        more, log = self.watch_with('rel-xprofd')
        assert more >= 1 and 'endpointslices' not in log.lower(), (more, log)
        _, log = self.watch_with('default')
        assert 'endpointslices' in log.lower(), log

    def check_pods_are_spread_over_zones(self):
        nodes = {n['metadata']['name']: n['metadata']['labels']['topology.kubernetes.io/zone'] for n in self.plane.get('/api/v1/nodes')['items']}
        for kind in ('frontend', 'shard'):
            zones = [nodes[p['spec']['nodeName']] for p in self.list('/api/v1', 'pods') if '-%s-' % kind in p['metadata']['name']]
            assert sorted(zones) == ['zone-0', 'zone-1'], zones

    def check_the_headless_service_names_the_shards(self):
        def names():
            return sorted(e['targetRef']['name'] for s in self.list('/apis/discovery.k8s.io/v1', 'endpointslices')
                          if s['metadata']['labels']['kubernetes.io/service-name'] == 'rel-xprofd-shard'
                          for e in s.get('endpoints') or [] if e['conditions']['ready'])
        until(lambda: names() == ['rel-xprofd-shard-0', 'rel-xprofd-shard-1'])

    def check_one_pod_of_each_kind_may_be_disrupted(self):
        for kind in ('frontend', 'shard'):
            until(lambda: self.named('/apis/policy/v1', 'poddisruptionbudgets', 'rel-xprofd-' + kind)['status']['disruptionsAllowed'] == 1)

    def check_processors_scale_shards_up(self):
        self.metrics.cpu['shard'] = 4200  # of 2000m: three times 70 %
        until(lambda: self.replicas() == 6)
        until(lambda: self.named('/apis/apps/v1', 'statefulsets', 'rel-xprofd-shard')['status']['readyReplicas'] == 6)
        assert self.replicas('frontend') == 2

    def check_processors_scale_frontends_up(self):
        self.metrics.cpu['frontend'] = 525  # of 500m: one and a half times 70 %
        until(lambda: self.replicas('frontend') >= 3)

    def check_what_waits_holds_shards_up_when_processors_idle(self):
        self.metrics.custom['xprofd_queue_waiting'] = '32'
        self.metrics.cpu.update(shard=10, frontend=10)

        def waits_count():
            hpa = self.named('/apis/autoscaling/v2', 'horizontalpodautoscalers', 'rel-xprofd-shard')
            shown = {m['type']: m for m in hpa['status'].get('currentMetrics') or []}
            return shown.get('Pods') and any(
                m['type'] == 'Pods' and m['pods']['metric']['name'] == 'xprofd_queue_waiting' and m['pods']['current']['averageValue'] == '32'
                for m in hpa['status']['currentMetrics'])
        until(waits_count)
        until(lambda: self.replicas('frontend') == 2)  # went down meanwhile: the autoscaler acted on idle processors
        assert self.replicas() == 6

    def check_refusals_alone_scale_shards_up(self):
        self.metrics.custom['xprofd_queue_waiting'] = '0'
        until(lambda: self.replicas() == 2)
        self.metrics.custom['xprofd_part_refused_per_second'] = '200m'
        until(lambda: self.replicas() >= 4)

    def check_shards_go_one_at_a_time(self):
        until(lambda: self.replicas() == 6)
        before = self.named('/apis/apps/v1', 'statefulsets', 'rel-xprofd-shard')['metadata']['resourceVersion']
        self.metrics.custom.clear()
        until(lambda: self.replicas() == 2)
        assert self.sizes_since(before) == [6, 5, 4, 3, 2], self.sizes_since(before)

    def check_identities_are_kept_over_a_restart(self):
        uid = self.named('/api/v1', 'pods', 'rel-xprofd-shard-1')['metadata']['uid']
        self.plane.ask('/api/v1/namespaces/%s/pods/rel-xprofd-shard-1' % NAMESPACE, 'DELETE')

        def again():
            p = self.named('/api/v1', 'pods', 'rel-xprofd-shard-1')
            return p['metadata']['uid'] != uid and p['status']['phase'] == 'Running'
        until(again)

    def check_an_upgrade_rolls_out(self):
        self.helm('upgrade', 'rel', CHART, '--wait', '--timeout', '2m', '--reuse-values', '--set', 'drainSeconds=60')
        # helm waits for the new ones; those before may go a moment later.
        until(lambda: all(p['metadata'].get('deletionTimestamp') or p['spec']['terminationGracePeriodSeconds'] == 75
                          for p in self.list('/api/v1', 'pods')))

    def check_a_wrong_value_changes_nothing(self):
        p = self.plane.helm('upgrade', 'rel', CHART, '--reuse-values', '--set', 'shard.replicsa=3')
        assert p.returncode != 0 and 'replicsa' in p.stderr, p.stderr

    def check_it_leaves_nothing_behind(self):
        self.helm('uninstall', 'rel', '--wait', '--timeout', '1m')
        for group, kind in (('/apis/apps/v1', 'deployments'), ('/apis/apps/v1', 'statefulsets'), ('/api/v1', 'services'),
                            ('/apis/autoscaling/v2', 'horizontalpodautoscalers'), ('/apis/networking.k8s.io/v1', 'networkpolicies'),
                            ('/apis/policy/v1', 'poddisruptionbudgets'), ('/api/v1', 'pods')):
            until(lambda: not self.list(group, kind))


# As the defaults, but that quiet times are seconds.
SCALING = '''
membership: endpointSlices
frontend:
  autoscaling: {enabled: true, scaleDown: {quietSeconds: 2, periodSeconds: 2}}
shard:
  autoscaling:
    enabled: true
    maxReplicas: 6
    queueWaiting: {enabled: true}
    refused: {enabled: true}
    scaleDown: {quietSeconds: 2, periodSeconds: 2}
'''


def prepare(plane):
    plane.start_api()
    plane.apply({'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {
        'name': NAMESPACE, 'labels': {'pod-security.kubernetes.io/enforce': 'restricted', 'pod-security.kubernetes.io/warn': 'restricted'}}})
    metrics = plane.add_metrics()
    plane.start_rest()
    plane.add_nodes()
    until(lambda: plane.get('/api/v1/namespaces/%s/serviceaccounts/default' % NAMESPACE), START_S)
    until(lambda: plane.get('/apis/custom.metrics.k8s.io/v1beta2'), START_S)
    until(lambda: plane.get('/apis/metrics.k8s.io/v1beta1'), START_S)
    return metrics


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    folder = tempfile.mkdtemp(prefix='xprofd-kubernetes-')
    plane, passed, failed, began = Plane(folder), 0, 0, time.monotonic()
    try:
        metrics = prepare(plane)
        print('the control plane is there after %.1f s' % (time.monotonic() - began), flush=True)
        checks = Checks(plane, metrics)
        for name in [n for n in vars(Checks) if n.startswith('check_')]:
            at = time.monotonic()
            try:
                getattr(checks, name)()
                passed += 1
                print('ok      %5.1f s  %s' % (time.monotonic() - at, name[6:].replace('_', ' ')), flush=True)
            except (AssertionError, OSError, KeyError, subprocess.TimeoutExpired) as e:
                failed += 1
                print('FAILED  %5.1f s  %s: %s' % (time.monotonic() - at, name[6:].replace('_', ' '), e), flush=True)
    except (AssertionError, OSError) as e:
        failed += 1
        print('FAILED: the control plane: %s' % e)
        for name, p in plane.running:
            print('%s: %s' % (name, 'ended with %d' % p.returncode if p.poll() is not None else 'runs'))
    finally:
        plane.stop()
    if failed and os.environ.get('KEEP'):
        print('logs are in ' + folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    print('%d passed, %d failed' % (passed, failed))
    sys.exit(failed > 0)


main()
