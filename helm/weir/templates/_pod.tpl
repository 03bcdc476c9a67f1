{{- define "weir.probe" -}}
{{- $get := dict "path" .path "port" "metrics" -}}
{{- if eq (include "weir.adminScheme" .root) "https" }}{{ $_ := set $get "scheme" "HTTPS" }}{{ end -}}
{{- toYaml (merge (deepCopy .timing) (dict "httpGet" $get)) -}}
{{- end -}}

{{- define "weir.env" -}}
{{- $env := list -}}
{{- $secret := .Values.redis.existingSecret -}}
{{- if eq (include "weir.hasSecretUrl" .) "yes" -}}
{{- $env = append $env (dict "name" "WEIR_REDIS_URL" "valueFrom" (dict "secretKeyRef" (dict "name" (printf "%s-redis" (include "weir.fullname" .)) "key" "url"))) -}}
{{- end -}}
{{- if $secret.name -}}
{{- range $name, $key := dict "WEIR_REDIS_URL" $secret.urlKey "WEIR_STORE_USERNAME" $secret.usernameKey "WEIR_STORE_PASSWORD" $secret.passwordKey -}}
{{- if $key -}}
{{- $env = append $env (dict "name" $name "valueFrom" (dict "secretKeyRef" (dict "name" $secret.name "key" $key))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $secret = .Values.identity.existingSecret -}}
{{- if $secret.name -}}
{{- range $name, $key := dict "WEIR_IDENTITY_CLIENT_SECRET" $secret.clientSecretKey "WEIR_IDENTITY_DIRECTORY_TOKEN" $secret.directoryTokenKey -}}
{{- if $key -}}
{{- $env = append $env (dict "name" $name "valueFrom" (dict "secretKeyRef" (dict "name" $secret.name "key" $key))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* A mounted file, unlike a variable, follows its Secret. */ -}}
{{- if include "weir.adminSecret" . -}}
{{- $env = append $env (dict "name" "WEIR_ADMIN_TOKEN_FILE" "value" (printf "/etc/weir/admin/%s" (include "weir.adminSecretKey" .))) -}}
{{- end -}}
{{- $env = append $env (dict "name" "NODE_ENV" "value" "production") -}}
{{- toYaml (concat $env (include "weir.telemetryEnv" . | fromYamlArray) .Values.extraEnv) -}}
{{- end -}}

{{- /* The standard variables of OpenTelemetry. Values of earlier charts have no `telemetry`. */ -}}
{{- define "weir.telemetryEnv" -}}
{{- $telemetry := default dict .Values.telemetry -}}
{{- $env := list -}}
{{- if $telemetry.endpoint -}}
{{- $env = append $env (dict "name" "OTEL_EXPORTER_OTLP_ENDPOINT" "value" $telemetry.endpoint) -}}
{{- if eq (toString $telemetry.traces) "false" -}}{{- $env = append $env (dict "name" "OTEL_TRACES_EXPORTER" "value" "none") -}}{{- end -}}
{{- if eq (toString $telemetry.metrics) "false" -}}{{- $env = append $env (dict "name" "OTEL_METRICS_EXPORTER" "value" "none") -}}{{- end -}}
{{- if not (kindIs "invalid" $telemetry.sampleRatio) -}}
{{- $env = append $env (dict "name" "OTEL_TRACES_SAMPLER" "value" "parentbased_traceidratio") -}}
{{- $env = append $env (dict "name" "OTEL_TRACES_SAMPLER_ARG" "value" (toString $telemetry.sampleRatio)) -}}
{{- end -}}
{{- with $telemetry.headersSecret -}}
{{- if .name -}}{{- $env = append $env (dict "name" "OTEL_EXPORTER_OTLP_HEADERS" "valueFrom" (dict "secretKeyRef" (dict "name" .name "key" (default "headers" .key)))) -}}{{- end -}}
{{- end -}}
{{- /* A name that begins with WEIR_ and is no setting causes a warning, and a user's own variables may be called POD_NAME. */ -}}
{{- $env = append $env (dict "name" "OTEL_K8S_POD_NAME" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.name"))) -}}
{{- $env = append $env (dict "name" "OTEL_RESOURCE_ATTRIBUTES" "value" (printf "k8s.namespace.name=%s,k8s.deployment.name=%s,k8s.pod.name=$(OTEL_K8S_POD_NAME)" (include "weir.namespace" .) (include "weir.fullname" .))) -}}
{{- range $name, $value := default dict $telemetry.env -}}
{{- $env = append $env (dict "name" $name "value" (toString $value)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $env -}}
{{- end -}}

{{- define "weir.volumeMounts" -}}
- { name: settings, mountPath: /etc/weir/settings, readOnly: true }
- { name: limits, mountPath: /etc/weir/limits, readOnly: true }
- { name: operations, mountPath: /etc/weir/operations, readOnly: true }
{{- if eq (include "weir.servesEnvoy" .) "yes" }}
- { name: descriptors, mountPath: /etc/weir/descriptors, readOnly: true }
{{- end }}
{{- if eq (include "weir.hasIdentities" .) "yes" }}
- { name: identities, mountPath: /etc/weir/identities, readOnly: true }
{{- end }}
{{- range .Values.limits.overrideConfigMaps }}
- { name: "overrides-{{ . | sha256sum | trunc 8 }}", mountPath: "/etc/weir/overrides/{{ . }}", readOnly: true }
{{- end }}
{{- if include "weir.watched" . | fromYamlArray }}
- { name: api-access, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true }
{{- end }}
{{- if and .Values.redis.tls.enabled .Values.redis.tls.existingSecret }}
- { name: redis-tls, mountPath: /etc/weir/redis-tls, readOnly: true }
{{- end }}
{{- if include "weir.tlsSecret" . }}
- { name: tls, mountPath: /etc/weir/tls, readOnly: true }
{{- end }}
{{- if include "weir.adminSecret" . }}
- { name: admin-token, mountPath: /etc/weir/admin, readOnly: true }
{{- end }}
{{- if include "weir.clientCaSecret" . }}
- { name: client-ca, mountPath: /etc/weir/client-ca, readOnly: true }
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "weir.volumes" -}}
- name: settings
  configMap: { name: {{ include "weir.fullname" . | quote }} }
- name: limits
  configMap: { name: {{ include "weir.limitsConfigMap" . | quote }} }
- name: operations
  configMap: { name: {{ include "weir.operationsConfigMap" . | quote }} }
{{- if eq (include "weir.servesEnvoy" .) "yes" }}
- name: descriptors
  configMap: { name: {{ include "weir.descriptorsConfigMap" . | quote }} }
{{- end }}
{{- if eq (include "weir.hasIdentities" .) "yes" }}
- name: identities
  secret: { secretName: {{ include "weir.identitiesSecret" . | quote }}, defaultMode: 288 } # 0440
{{- end }}
{{- range .Values.limits.overrideConfigMaps }}
- name: overrides-{{ . | sha256sum | trunc 8 }}
  configMap: { name: {{ . | quote }} }
{{- end }}
{{- if include "weir.watched" . | fromYamlArray }}
# The same as an automounted token, but only for the gateway's container.
- name: api-access
  projected:
    sources:
      - serviceAccountToken: { path: token, expirationSeconds: 3607 }
      - configMap: { name: kube-root-ca.crt, items: [{ key: ca.crt, path: ca.crt }] }
      - downwardAPI: { items: [{ path: namespace, fieldRef: { fieldPath: metadata.namespace } }] }
{{- end }}
{{- if and .Values.redis.tls.enabled .Values.redis.tls.existingSecret }}
- name: redis-tls
  secret: { secretName: {{ .Values.redis.tls.existingSecret | quote }}, defaultMode: 288 } # 0440
{{- end }}
{{- with include "weir.tlsSecret" . }}
- name: tls
  secret: { secretName: {{ . | quote }}, defaultMode: 288 } # 0440
{{- end }}
{{- with include "weir.adminSecret" . }}
- name: admin-token
  secret: { secretName: {{ . | quote }}, defaultMode: 288 } # 0440
{{- end }}
{{- with include "weir.clientCaSecret" . }}
- name: client-ca
  secret: { secretName: {{ . | quote }}, defaultMode: 288 } # 0440
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
