{{- define "cellblock.labels" -}}
app.kubernetes.io/name: cellblock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "cellblock.gateway" -}}
app.kubernetes.io/name: cellblock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end }}

{{- define "cellblock.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "cellblock.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}
