{{- define "moorage.name" -}}
{{- if eq .Release.Name .Chart.Name -}}{{ .Chart.Name }}{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "moorage.selector" -}}
app.kubernetes.io/name: moorage
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "moorage.labels" -}}
{{ include "moorage.selector" . }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Another name: Service, budget and spread of the scheduler are not about these pods. */}}
{{- define "moorage.groupSelector" -}}
app.kubernetes.io/name: moorage-group-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "moorage.groupLabels" -}}
{{ include "moorage.groupSelector" . }}
app.kubernetes.io/component: controller
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Another name, for the same reason. */}}
{{- define "moorage.pageSelector" -}}
app.kubernetes.io/name: moorage-page
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "moorage.pageLabels" -}}
{{ include "moorage.pageSelector" . }}
app.kubernetes.io/component: page
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The Secret with the certificate of the page; empty without one. */}}
{{- define "moorage.pageCertificate" -}}
{{- if .Values.page.certificate.secretName -}}
{{ .Values.page.certificate.secretName }}
{{- else if .Values.page.certificate.issuer -}}
{{ include "moorage.name" . }}-page-certificate
{{- end -}}
{{- end -}}

{{- define "moorage.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "moorage.schedulerName" -}}
{{- .Values.schedulerName | default (ternary "default-scheduler" "moorage" (eq .Values.mode "only")) -}}
{{- end -}}

{{/* The name of the first profile, which pods give. */}}
{{- define "moorage.firstProfile" -}}
{{- if .Values.profiles -}}
{{ (first .Values.profiles).schedulerName | default "default-scheduler" }}
{{- else -}}
{{ include "moorage.schedulerName" . }}
{{- end -}}
{{- end -}}

{{- define "moorage.leaseNamespace" -}}
{{- .Values.lease.namespace | default (ternary "kube-system" .Release.Namespace (eq .Values.mode "only")) -}}
{{- end -}}

{{- define "moorage.leaseName" -}}
{{- .Values.lease.name | default (ternary "kube-scheduler" (include "moorage.name" .) (eq .Values.mode "only")) -}}
{{- end -}}

{{- define "moorage.priorityClass" -}}
{{- .Values.priorityClass.name | default (ternary (include "moorage.name" .) "system-cluster-critical" .Values.priorityClass.create) -}}
{{- end -}}

{{/* The ConfigMap with files of plugins; empty without files. */}}
{{- define "moorage.plugins" -}}
{{- if .Values.plugins.configMap -}}
{{- if .Values.plugins.files -}}{{ fail "plugins: give files or configMap, not both" }}{{- end -}}
{{ .Values.plugins.configMap }}
{{- else if .Values.plugins.files -}}
{{ include "moorage.name" . }}-plugins
{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of the secure port; empty without one. */}}
{{- define "moorage.certificate" -}}
{{- if .Values.certificate.secretName -}}
{{ .Values.certificate.secretName }}
{{- else if .Values.certificate.issuer -}}
{{ include "moorage.name" . }}-certificate
{{- end -}}
{{- end -}}

{{/* The name in the certificate of the secure port. */}}
{{- define "moorage.host" -}}
{{ include "moorage.name" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{/* The profiles of the configuration. */}}
{{- define "moorage.profiles" -}}
{{- if .Values.profiles -}}
{{ toYaml .Values.profiles }}
{{- else -}}
- schedulerName: {{ include "moorage.schedulerName" . }}
{{- if eq .Values.profile "coscheduling" }}
  plugins:
    multiPoint:
      enabled: [{name: Coscheduling}]
      disabled: [{name: PrioritySort}]
{{- else if eq .Values.profile "qos-sort" }}
  plugins:
    multiPoint:
      enabled: [{name: QOSSort}]
      disabled: [{name: PrioritySort}]
{{- else if eq .Values.profile "bin-packing" }}
  plugins:
    # These two pull towards empty nodes. Only their scores go: hard spread constraints are kept.
    preScore:
      disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
{{- end }}
{{- end -}}
{{- end -}}

{{- define "moorage.configuration" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: {{ include "moorage.leaseNamespace" . }}
  resourceName: {{ include "moorage.leaseName" . }}
profiles:
{{ include "moorage.profiles" . }}
{{- with .Values.moorageConfiguration }}
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
{{ toYaml . }}
{{- end }}
{{- end -}}
