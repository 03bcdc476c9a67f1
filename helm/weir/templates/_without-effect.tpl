{{/* Values that are set and have no effect, each with the reason: a list. NOTES.txt prints it. */}}
{{- define "weir.withoutEffect" -}}
{{- $found := list -}}
{{- $tls := default dict .Values.tls -}}
{{- if not $tls.enabled -}}
{{- range $value, $set := dict "tls.existingSecret" $tls.existingSecret "tls.admin" $tls.admin "tls.decisions" $tls.decisions "tls.clientCa" (dig "clientCa" "existingSecret" "" $tls) "tls.certManager" (dig "certManager" "enabled" false $tls) -}}
{{- if $set -}}{{- $found = append $found (printf "%s, because tls.enabled is false" $value) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.redis.tls.existingSecret (not .Values.redis.tls.enabled) -}}{{- $found = append $found "redis.tls.existingSecret, because redis.tls.enabled is false" -}}{{- end -}}
{{- range $kind := list "jwt" "introspection" "api-keys" -}}
{{- if and (get $.Values.identity $kind) (ne $.Values.identity.kind $kind) -}}{{- $found = append $found (printf "identity.%s, because identity.kind is %s" $kind $.Values.identity.kind) -}}{{- end -}}
{{- end -}}
{{- $static := .Values.identity.static -}}
{{- if and $static.existingSecret (or $static.tokens $static.principals $static.accounts) -}}{{- $found = append $found "identity.static.tokens, principals and accounts, because of identity.static.existingSecret" -}}{{- end -}}
{{- if .Values.limits.existingConfigMap -}}
{{- range list "defaults" "limits" "plans" "accounts" "organizations" "addresses" "principals" -}}
{{- if index $.Values.limits . -}}{{- $found = append $found (printf "limits.%s, because of limits.existingConfigMap" .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.operations.existingConfigMap .Values.operations.openapi -}}{{- $found = append $found "operations.openapi, because of operations.existingConfigMap" -}}{{- end -}}
{{- if and .Values.ingress.hosts (not .Values.ingress.enabled) -}}{{- $found = append $found "ingress.hosts, because ingress.enabled is false" -}}{{- end -}}
{{- with .Values.gatewayAPI.httpRoute -}}
{{- if and .parentRefs (not .enabled) -}}{{- $found = append $found "gatewayAPI.httpRoute.parentRefs, because gatewayAPI.httpRoute.enabled is false" -}}{{- end -}}
{{- end -}}
{{- if not .Values.networkPolicy.enabled -}}
{{- range list "from" "metricsFrom" "decisionsFrom" "egress" -}}
{{- if index $.Values.networkPolicy . -}}{{- $found = append $found (printf "networkPolicy.%s, because networkPolicy.enabled is false" .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $telemetry := default dict .Values.telemetry -}}
{{- if and (not (kindIs "invalid" $telemetry.sampleRatio)) (not $telemetry.endpoint) -}}{{- $found = append $found "telemetry.sampleRatio, because telemetry.endpoint is empty" -}}{{- end -}}
{{- if and .Values.autoscaling.enabled (not (kindIs "invalid" .Values.replicaCount)) -}}{{- $found = append $found "replicaCount, because autoscaling.enabled is true" -}}{{- end -}}
{{- if and .Values.autoscaling.enabled (not .Values.autoscaling.keda.enabled) .Values.autoscaling.targetCPUUtilizationPercentage -}}
{{- $resources := default dict .Values.resources -}}
{{- if not (or (default dict $resources.requests).cpu (default dict $resources.limits).cpu) -}}{{- $found = append $found "autoscaling.targetCPUUtilizationPercentage, because resources.requests.cpu is empty" -}}{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}
