{{/* The ConfigMaps of the release: a list of name and data. */}}
{{- define "weir.configMaps" -}}
{{- $maps := list (dict "name" (include "weir.fullname" .) "data" (dict "weir.yaml" (include "weir.settings" .))) -}}
{{- if not .Values.limits.existingConfigMap -}}
{{- $limits := toYaml (pick .Values.limits "windowSeconds" "defaults" "limits" "plans" "accounts" "organizations" "addresses" "principals") -}}
{{- $maps = append $maps (dict "name" (include "weir.limitsConfigMap" .) "data" (dict .Values.limits.key $limits)) -}}
{{- end -}}
{{- if not .Values.operations.existingConfigMap -}}
{{- $openapi := default (dict "openapi" "3.1.0" "info" (dict "title" "no operations" "version" "1") "paths" dict) .Values.operations.openapi -}}
{{- if not (kindIs "string" $openapi) -}}{{- $openapi = toYaml $openapi -}}{{- end -}}
{{- $maps = append $maps (dict "name" (include "weir.operationsConfigMap" .) "data" (dict .Values.operations.key $openapi)) -}}
{{- end -}}
{{- if and (eq (include "weir.servesEnvoy" .) "yes") (not .Values.decisions.envoy.existingConfigMap) -}}
{{- $files := dict -}}
{{- range $name, $rules := .Values.decisions.envoy.rules -}}
{{- $_ := set $files $name (ternary $rules (toYaml $rules) (kindIs "string" $rules)) -}}
{{- end -}}
{{- $maps = append $maps (dict "name" (include "weir.descriptorsConfigMap" .) "data" $files) -}}
{{- end -}}
{{- toYaml $maps -}}
{{- end -}}

{{/* The Secrets of the release: a list of name and encoded data. */}}
{{- define "weir.secrets" -}}
{{- $secrets := list -}}
{{- if and (eq (include "weir.hasIdentities" .) "yes") (not .Values.identity.static.existingSecret) -}}
{{- $identities := toYaml (pick .Values.identity.static "tokens" "principals" "accounts") | b64enc -}}
{{- $secrets = append $secrets (dict "name" (include "weir.identitiesSecret" .) "data" (dict .Values.identity.static.key $identities)) -}}
{{- end -}}
{{- if eq (include "weir.hasSecretUrl" .) "yes" -}}
{{- $secrets = append $secrets (dict "name" (printf "%s-redis" (include "weir.fullname" .)) "data" (dict "url" (b64enc .Values.redis.url))) -}}
{{- end -}}
{{- if eq (include "weir.makesAdminSecret" .) "yes" -}}
{{- $secrets = append $secrets (dict "name" (include "weir.adminSecret" .) "data" (dict (include "weir.adminSecretKey" .) (b64enc .Values.admin.token))) -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end -}}
