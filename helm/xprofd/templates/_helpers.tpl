{{- define "xprofd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* Short enough that "-frontend" and a pod's suffix fit into a label. */}}
{{- define "xprofd.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "xprofd.selector" -}}
app.kubernetes.io/name: {{ include "xprofd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "xprofd.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "xprofd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "xprofd.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{- define "xprofd.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "xprofd.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The Secret with the key that frontends and shards share. */}}
{{- define "xprofd.keySecret" -}}
{{- with .Values.rpcKey }}
{{- $ways := 0 }}
{{- if .existingSecret }}{{ $ways = add1 $ways }}{{ end }}
{{- if .value }}{{ $ways = add1 $ways }}{{ end }}
{{- if .externalSecret.enabled }}{{ $ways = add1 $ways }}{{ end }}
{{- if ne (int $ways) 1 }}
{{- fail "rpcKey: give one of existingSecret, value and externalSecret.enabled" }}
{{- end }}
{{- if .existingSecret }}{{ .existingSecret }}{{ else }}{{ include "xprofd.fullname" $ }}-rpc-key{{ end }}
{{- end }}
{{- end }}

{{/* "8Gi" or "512Mi" in MiB. */}}
{{- define "xprofd.mebibytes" -}}
{{- if hasSuffix "Gi" . }}{{ mul (trimSuffix "Gi" . | int64) 1024 }}{{ else }}{{ trimSuffix "Mi" . | int64 }}{{ end }}
{{- end }}

{{/* "1500m" or "2" in whole cores, rounded up. */}}
{{- define "xprofd.cores" -}}
{{- if hasSuffix "m" . }}{{ div (add (trimSuffix "m" . | int64) 999) 1000 }}{{ else }}{{ int64 . }}{{ end }}
{{- end }}

{{/* What a shard's profiles may take, in MiB: leaves room for the rest, or is refused. */}}
{{- define "xprofd.budget" -}}
{{- $memory := include "xprofd.mebibytes" .Values.shard.memory | int64 }}
{{- $budget := div (mul $memory (int64 .Values.shard.budgetPercent)) 100 }}
{{- $ahead := include "xprofd.mebibytes" .Values.bucket.memory | int64 }}
{{- if gt (add $budget $ahead 64) (div (mul $memory 9) 10) }}
{{- fail (printf "shard.memory %s leaves too little beside a budget of %d MiB and bucket.memory %s" .Values.shard.memory $budget .Values.bucket.memory) }}
{{- end }}
{{- $budget }}
{{- end }}

{{/* How long a process ends what is under way after its drain; server/main.c's DRAIN_MS. */}}
{{- define "xprofd.finishSeconds" -}}10{{- end }}

{{- define "xprofd.graceSeconds" -}}
{{- add (int64 .Values.drainSeconds) (include "xprofd.finishSeconds" . | int64) 5 }}
{{- end }}

{{/* Two missed probes are well within the drain. */}}
{{- define "xprofd.probePeriod" -}}
{{- max 1 (min 10 (div (int64 .Values.drainSeconds) 6)) }}
{{- end }}

{{- define "xprofd.shards" -}}
{{- if eq .Values.membership "endpointSlices" -}}
k8s:{{ .Release.Namespace }}/{{ include "xprofd.fullname" . }}-shard:{{ .Values.shard.port }}
{{- else -}}
dns:{{ include "xprofd.fullname" . }}-shard.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}:{{ .Values.shard.port }}
{{- end }}
{{- end }}

{{/* Entries of Secrets that a frontend reads as files: {files: [{name, secret, key}]}. */}}
{{- define "xprofd.frontendFiles" -}}
files:
  {{- with .Values.links.existingSecret }}
  - {name: link-keys, secret: {{ . }}, key: {{ $.Values.links.key }}}
  {{- end }}
  {{- if .Values.auth.mode }}
  {{- with .Values.auth.cookieKey.existingSecret }}
  - {name: cookie-key, secret: {{ . }}, key: {{ $.Values.auth.cookieKey.key }}}
  {{- end }}
  {{- end }}
  {{- if and (eq .Values.auth.mode "oidc") .Values.auth.oidc.clientSecret.existingSecret }}
  - {name: oidc-client-secret, secret: {{ .Values.auth.oidc.clientSecret.existingSecret }}, key: {{ .Values.auth.oidc.clientSecret.key }}}
  {{- end }}
  {{- if and (eq .Values.auth.mode "header") .Values.auth.header.secret.existingSecret }}
  - {name: trusted-secret, secret: {{ .Values.auth.header.secret.existingSecret }}, key: {{ .Values.auth.header.secret.key }}}
  {{- end }}
{{- end }}

{{/* A frontend's own flags, as a list. */}}
{{- define "xprofd.frontendArgs" -}}
- --shards={{ include "xprofd.shards" . }}
{{- range splitList "\n" (include "xprofd.hosts" .) }}
- {{ printf "--allow-host=%s" . | quote }}
{{- end }}
{{- if .Values.frontend.tlsSecret }}
- --tls-cert=/etc/xprofd/tls/tls.crt
- --tls-key=/etc/xprofd/tls/tls.key
{{- end }}
{{- if ne (empty .Values.links.existingSecret) (empty .Values.links.state) }}
{{- fail "links.existingSecret and links.state go together" }}
{{- end }}
{{- if .Values.links.existingSecret }}
- --link-keys=/etc/xprofd/link-keys/key
- {{ printf "--state=%s" .Values.links.state | quote }}
{{- end }}
{{- include "xprofd.authArgs" . }}
{{- end }}

{{- define "xprofd.authArgs" -}}
{{- with .Values.auth }}
{{- if not .mode }}
{{- fail "auth.mode: say who may come in: oidc, iap or header" }}
{{- end }}
- --auth={{ .mode }}
{{- if eq .mode "oidc" }}
- {{ printf "--oidc-issuer=%s" (required "auth.oidc.issuer is missing" .oidc.issuer) | quote }}
{{- if not (or .oidc.clientId .oidc.audiences) }}{{ fail "auth.oidc: give clientId (browsers) or audiences (bearer tokens)" }}{{ end }}
{{- with .oidc.clientId }}
{{- if not $.Values.auth.cookieKey.existingSecret }}{{ fail "auth.cookieKey.existingSecret: frontends share sessions, so they need one key" }}{{ end }}
- {{ printf "--oidc-client-id=%s" . | quote }}
{{- end }}
{{- if .oidc.clientSecret.existingSecret }}
- --oidc-client-secret-file=/etc/xprofd/oidc-client-secret/key
{{- end }}
{{- range .oidc.audiences }}
- {{ printf "--oidc-audience=%s" . | quote }}
{{- end }}
{{- with .oidc.groupsClaim }}
- {{ printf "--oidc-groups-claim=%s" . | quote }}
{{- end }}
{{- with .oidc.scopes }}
- {{ printf "--oidc-scopes=%s" . | quote }}
{{- end }}
{{- if .oidc.trustEmail }}
- --oidc-trust-email
{{- end }}
{{- else if eq .mode "iap" }}
- {{ printf "--iap-audience=%s" (required "auth.iap.audience is missing" .iap.audience) | quote }}
{{- else }}
- {{ printf "--trusted-header=%s" (required "auth.header.name is missing" .header.name) | quote }}
{{- with .header.groups }}
- {{ printf "--trusted-groups-header=%s" . | quote }}
{{- end }}
{{- if .header.secret.existingSecret }}
- --trusted-secret-file=/etc/xprofd/trusted-secret/key
{{- end }}
{{- range .header.from }}
- {{ printf "--trusted-from=%s" . | quote }}
{{- end }}
{{- end }}
{{- if .cookieKey.existingSecret }}
- --cookie-key=/etc/xprofd/cookie-key/key
{{- end }}
{{- with .publicUrl }}
- {{ printf "--public-url=%s" . | quote }}
{{- end }}
- --session-hours={{ .sessionHours }}
- --rate-limit={{ .rateLimit }}
- --rate-limit-address={{ .rateLimitAddress }}
{{- end }}
{{- end }}

{{/* Names by which the frontend is asked, a line each. */}}
{{- define "xprofd.hosts" -}}
{{- $service := printf "%s-frontend" (include "xprofd.fullname" .) }}
{{- $hosts := list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) }}
{{- $hosts = append $hosts (printf "%s.%s.svc.%s" $service .Release.Namespace .Values.clusterDomain) }}
{{- if .Values.ingress.enabled }}{{- range .Values.ingress.hosts }}{{ $hosts = append $hosts .host }}{{- end }}{{- end }}
{{- if .Values.gateway.enabled }}{{ $hosts = concat $hosts .Values.gateway.hostnames }}{{- end }}
{{- $hosts = concat $hosts .Values.frontend.allowHosts | uniq }}
{{- if gt (len $hosts) 16 }}{{ fail "the frontend takes 16 names at most: see ingress.hosts, gateway.hostnames, frontend.allowHosts" }}{{ end }}
{{- join "\n" $hosts }}
{{- end }}

{{/* Flags that both kinds of process have. */}}
{{- define "xprofd.commonArgs" -}}
- --host={{ .root.Values.listenAddress }}
- --port={{ .of.port }}
- --admin-port={{ .of.adminPort }}
- --drain-seconds={{ .root.Values.drainSeconds }}
- --threads={{ include "xprofd.cores" (default .of.cpu .of.cpuLimit) }}
- --rpc-key=/etc/xprofd/rpc-key/key
- --log-level={{ .root.Values.logLevel }}
{{- if .root.Values.accessLog }}
- --access-log=-
{{- end }}
{{- with .root.Values.tracing }}
{{- if .endpoint }}
- {{ printf "--otlp-endpoint=%s" .endpoint | quote }}
- --trace-percent={{ .percent }}
{{- end }}
{{- end }}
- --bucket-auth={{ .root.Values.bucket.auth }}
- --bucket-memory={{ include "xprofd.mebibytes" .root.Values.bucket.memory }}MiB
{{- with .root.Values.bucket.gcsEndpoint }}
- {{ printf "--gcs-endpoint=%s" . | quote }}
{{- end }}
{{- with .root.Values.bucket.s3Endpoint }}
- {{ printf "--s3-endpoint=%s" . | quote }}
{{- end }}
{{- with .root.Values.projects }}
{{- $given := or .table .object }}
{{- if and $given $.root.Values.logdirs }}{{ fail "give logdirs or projects, not both" }}{{ end }}
{{- if and .table .object }}{{ fail "projects: give table or object, not both" }}{{ end }}
{{- if not (or $given $.root.Values.logdirs) }}{{ fail "say where the profiles are: logdirs or projects" }}{{ end }}
{{- if .table }}
- --projects=/etc/xprofd/projects/projects.json
{{- else if .object }}
- {{ printf "--projects=%s" .object | quote }}
{{- end }}
{{- with .default }}
- {{ printf "--default-project=%s" . | quote }}
{{- end }}
{{- end }}
{{- range .root.Values.logdirs }}
- {{ printf "--logdir=%s" . | quote }}
{{- end }}
{{- end }}

{{/* The pod of a kind: {root, kind, of: its values, args: its own flags as YAML, files: of Secrets, token: whether
     it speaks to the API server}. */}}
{{- define "xprofd.pod" -}}
metadata:
  labels:
    {{- include "xprofd.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .kind }}
    {{- with .of.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- $annotations := dict }}
  {{- with .root.Values.rpcKey.value }}
  {{- $annotations = dict "checksum/rpc-key" (sha256sum .) }}
  {{- end }}
  {{- with merge (dict) .of.podAnnotations $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "xprofd.serviceAccount" .root }}
  automountServiceAccountToken: {{ .token }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "xprofd.graceSeconds" .root }}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    seccompProfile: {type: RuntimeDefault}
    {{- toYaml .root.Values.podSecurityContext | nindent 4 }}
  {{- with .of.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .of.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .of.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .of.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .of.topologySpread.enabled }}
  topologySpreadConstraints:
    {{- range list .of.topologySpread.zoneKey .of.topologySpread.hostKey }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "xprofd.selector" $.root | nindent 10 }}
          app.kubernetes.io/component: {{ $.kind }}
    {{- end }}
  {{- end }}
  containers:
    - name: xprofd
      image: {{ include "xprofd.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args:
        - {{ .kind }}
        {{- include "xprofd.commonArgs" . | nindent 8 }}
        {{- .args | nindent 8 }}
        {{- range concat .root.Values.extraArgs .of.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- with concat .root.Values.extraEnv .of.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: http, containerPort: {{ .of.port }}, protocol: TCP}
        - {name: admin, containerPort: {{ .of.adminPort }}, protocol: TCP}
      {{- $period := include "xprofd.probePeriod" .root }}
      startupProbe:
        httpGet: {path: /livez, port: admin}
        periodSeconds: 1
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /livez, port: admin}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: admin}
        periodSeconds: {{ $period }}
        timeoutSeconds: {{ $period }}
        failureThreshold: 2
      resources:
        requests:
          cpu: {{ .of.cpu | quote }}
          memory: {{ .of.memory }}
        limits:
          {{- with .of.cpuLimit }}
          cpu: {{ . | quote }}
          {{- end }}
          memory: {{ .of.memory }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: rpc-key, mountPath: /etc/xprofd/rpc-key, readOnly: true}
        {{- range .files }}
        - {name: {{ .name }}, mountPath: /etc/xprofd/{{ .name }}, readOnly: true}
        {{- end }}
        {{- if .root.Values.projects.table }}
        - {name: projects, mountPath: /etc/xprofd/projects, readOnly: true}
        {{- end }}
        {{- if .of.tlsSecret }}
        - {name: tls, mountPath: /etc/xprofd/tls, readOnly: true}
        {{- end }}
        {{- if .of.scratch }}
        - {name: scratch, mountPath: /tmp}
        {{- end }}
        {{- with concat .root.Values.extraVolumeMounts .of.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: rpc-key
      secret:
        secretName: {{ include "xprofd.keySecret" .root }}
        defaultMode: 0440
        items: [{key: {{ .root.Values.rpcKey.key }}, path: key}]
    {{- range .files }}
    - name: {{ .name }}
      secret: {secretName: {{ .secret }}, defaultMode: 0440, items: [{key: {{ .key }}, path: key}]}
    {{- end }}
    {{- if .root.Values.projects.table }}
    - name: projects
      configMap: {name: {{ include "xprofd.fullname" .root }}-projects}
    {{- end }}
    {{- with .of.tlsSecret }}
    - name: tls
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
    {{- with .of.scratch }}
    - name: scratch
      emptyDir: {sizeLimit: {{ . }}}
    {{- end }}
    {{- with concat .root.Values.extraVolumes .of.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* {root, kind, of, target: the scaled kind, metrics: entries before the CPU's} */}}
{{- define "xprofd.autoscaler" -}}
{{- if gt (int .of.autoscaling.minReplicas) (int .of.autoscaling.maxReplicas) }}
{{- fail (printf "%s.autoscaling: minReplicas is above maxReplicas" .kind) }}
{{- end -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "xprofd.fullname" .root }}-{{ .kind }}
  labels:
    {{- include "xprofd.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .kind }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: {{ .target }}
    name: {{ include "xprofd.fullname" .root }}-{{ .kind }}
  minReplicas: {{ .of.autoscaling.minReplicas }}
  maxReplicas: {{ .of.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ .of.autoscaling.targetCPU }}}
    {{- range .podMetrics }}
    - type: Pods
      pods:
        metric: {name: {{ .metric }}}
        target: {type: AverageValue, averageValue: {{ .average | quote }}}
    {{- end }}
    {{- with .of.autoscaling.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  behavior:
    scaleDown:
      stabilizationWindowSeconds: {{ .of.autoscaling.scaleDown.quietSeconds }}
      policies:
        - type: Pods
          value: {{ .of.autoscaling.scaleDown.pods }}
          periodSeconds: {{ .of.autoscaling.scaleDown.periodSeconds }}
{{- end }}

{{- define "xprofd.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "xprofd.fullname" .root }}-{{ .kind }}
  labels:
    {{- include "xprofd.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .kind }}
spec:
  maxUnavailable: {{ .of.disruptionBudget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "xprofd.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .kind }}
{{- end }}

{{/* What every pod of the release may reach. */}}
{{- define "xprofd.egress" -}}
{{- if or .Values.networkPolicy.egress.dns .Values.networkPolicy.egress.dnsCIDRs }}
- ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
  to:
    {{- with .Values.networkPolicy.egress.dns }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- range .Values.networkPolicy.egress.dnsCIDRs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
{{- end }}
- ports:
    {{- range .Values.networkPolicy.egress.storagePorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  to:
    {{- range .Values.networkPolicy.egress.storageCIDRs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
{{- /* A rule without peers would let everything through. */}}
{{- if and .Values.networkPolicy.egress.metadataCIDRs .Values.networkPolicy.egress.metadataPorts }}
- ports:
    {{- range .Values.networkPolicy.egress.metadataPorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  to:
    {{- range .Values.networkPolicy.egress.metadataCIDRs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
{{- end }}
{{- if .Values.tracing.endpoint }}
- ports:
    {{- range .Values.networkPolicy.egress.collectorPorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  to:
    {{- toYaml .Values.networkPolicy.egress.collector | nindent 4 }}
{{- end }}
{{- with .Values.networkPolicy.egress.extra }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Who reads the admin port, as an ingress rule; {root, of}. */}}
{{- define "xprofd.adminIngress" -}}
{{- with .root.Values.networkPolicy.monitoringFrom }}
- ports: [{port: {{ $.of.adminPort }}, protocol: TCP}]
  from:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}
