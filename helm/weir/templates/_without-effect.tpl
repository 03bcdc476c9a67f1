{{/* Values that would be in a ConfigMap although they are secrets, each with its variable: a list. NOTES.txt prints it. */}}
{{- define "weir.plainSecrets" -}}
{{- $found := list -}}
{{- $settings := include "weir.settings" . | fromYaml -}}
{{- range list (list "admin" "token" "WEIR_ADMIN_TOKEN") (list "decisions" "token" "WEIR_DECISIONS_TOKEN") (list "store" "password" "WEIR_STORE_PASSWORD") (list "identity" "clientSecret" "WEIR_IDENTITY_CLIENT_SECRET") (list "notifications" "secret" "WEIR_NOTIFICATIONS_SECRET") -}}
{{- if dig (index . 0) (index . 1) "" $settings -}}{{- $found = append $found (printf "%s.%s: %s" (index . 0) (index . 1) (index . 2)) -}}{{- end -}}
{{- end -}}
{{- if dig "identity" "directory" "token" "" $settings -}}{{- $found = append $found "identity.directory.token: WEIR_IDENTITY_DIRECTORY_TOKEN" -}}{{- end -}}
{{- if regexMatch "^[a-z]+://[^/@]*:[^/@]*@" (dig "journal" "url" "" $settings) -}}{{- $found = append $found "journal.url: WEIR_JOURNAL_URL" -}}{{- end -}}
{{- if contains "@" (dig "store" "url" "" $settings) -}}{{- $found = append $found "store.url: WEIR_REDIS_URL" -}}{{- end -}}
{{- toYaml $found -}}
{{- end -}}
{{/* The default of upstream.url: a container of the same pod. */}}
{{- define "weir.ownUpstream" -}}http://127.0.0.1:3000{{- end -}}
{{/* Where requests go in the pod; empty if they go to another one, or if a variable may say where. */}}
{{- define "weir.upstreamInPod" -}}
{{- $url := dig "upstream" "url" "" (include "weir.settings" . | fromYaml) -}}
{{- $isSet := or .Values.extraEnvFrom (contains "WEIR_UPSTREAM_URL" (toJson .Values.extraEnv)) -}}
{{- if and (ne (include "weir.onlyDecides" .) "yes") (not $isSet) (regexMatch "^https?://(127\\.|localhost|\\[::1\\])" $url) -}}{{- $url -}}{{- end -}}
{{- end -}}
{{/* "yes" if requests go to a container of the same pod, and there is none. */}}
{{- define "weir.lacksUpstream" -}}
{{- if and (eq (include "weir.upstreamInPod" .) (include "weir.ownUpstream" .)) (not (or .Values.extraContainers .Values.initContainers)) -}}yes{{- end -}}
{{- end -}}
{{/* "yes" if requests go to a container of the same pod that gets SIGTERM together with the gateway. */}}
{{- define "weir.upstreamEndsFirst" -}}
{{- $outlives := false -}}
{{- range .Values.extraContainers -}}{{- if dig "preStop" "" (default dict .lifecycle) -}}{{- $outlives = true -}}{{- end -}}{{- end -}}
{{- range .Values.initContainers -}}{{- if eq (toString .restartPolicy) "Always" -}}{{- $outlives = true -}}{{- end -}}{{- end -}}
{{- if and (include "weir.upstreamInPod" .) .Values.extraContainers (not $outlives) -}}yes{{- end -}}
{{- end -}}
{{/* Values that are set and have no effect, each with the reason: a list. NOTES.txt prints it. */}}
{{- define "weir.withoutEffect" -}}
{{- $found := list -}}
{{- $tls := default dict .Values.tls -}}
{{- if not $tls.enabled -}}
{{- range $value, $set := dict "tls.existingSecret" $tls.existingSecret "tls.admin" $tls.admin "tls.decisions" $tls.decisions "tls.clientCa" (dig "clientCa" "existingSecret" "" $tls) "tls.certManager" (dig "certManager" "enabled" false $tls) -}}
{{- if $set -}}{{- $found = append $found (printf "%s, because tls.enabled is false" $value) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $decisions := default dict .Values.decisions -}}
{{- if not $decisions.enabled -}}
{{- if $decisions.trusted -}}{{- $found = append $found "decisions.trusted, because decisions.enabled is false" -}}{{- end -}}
{{- if and $tls.enabled $tls.decisions -}}{{- $found = append $found "tls.decisions, because decisions.enabled is false" -}}{{- end -}}
{{- else if and (dig "envoy" "existingConfigMap" "" $decisions) (dig "envoy" "rules" dict $decisions) -}}
{{- $found = append $found "decisions.envoy.rules, because of decisions.envoy.existingConfigMap" -}}
{{- end -}}
{{- if and $tls.enabled (eq (include "weir.onlyDecides" .) "yes") (not $tls.decisions) -}}
{{- $unused := ternary (ternary "tls.clientCa" "" (ne (include "weir.clientCaSecret" .) "")) "tls" (eq (toString $tls.admin) "true") -}}
{{- if $unused -}}{{- $found = append $found (printf "%s, because decisions.only leaves no port for clients, and tls.decisions is false" $unused) -}}{{- end -}}
{{- end -}}
{{- if and .Values.platform.enabled (ne (default (include "weir.ownUpstream" .) .Values.upstream.url) (include "weir.ownUpstream" .)) -}}{{- $found = append $found "upstream.url, because platform.enabled is true" -}}{{- end -}}
{{- if and (dig "existingSecret" "name" "" (default dict .Values.admin)) (default dict .Values.admin).token -}}{{- $found = append $found "admin.token, because of admin.existingSecret" -}}{{- end -}}
{{- if and .Values.redis.tls.enabled (ne (include "weir.hasRedis" .) "yes") -}}{{- $found = append $found "redis.tls, because no Redis is set" -}}{{- end -}}
{{- $onStoreFailure := (include "weir.settings" . | fromYaml).store.onStoreFailure -}}
{{- if and (not (kindIs "invalid" .Values.redis.expectedReplicas)) (ne $onStoreFailure "share") -}}{{- $found = append $found (printf "redis.expectedReplicas, because redis.onStoreFailure is %s" $onStoreFailure) -}}{{- end -}}
{{- if and .Values.redis.tls.existingSecret (not .Values.redis.tls.enabled) -}}{{- $found = append $found "redis.tls.existingSecret, because redis.tls.enabled is false" -}}{{- end -}}
{{- range $kind := list "jwt" "introspection" "api-keys" -}}
{{- if and (get $.Values.identity $kind) (ne $.Values.identity.kind $kind) -}}{{- $found = append $found (printf "identity.%s, because identity.kind is %s" $kind $.Values.identity.kind) -}}{{- end -}}
{{- end -}}
{{- $static := .Values.identity.static -}}
{{- if and $static.existingSecret (or $static.tokens $static.principals $static.accounts) -}}{{- $found = append $found "identity.static.tokens, principals and accounts, because of identity.static.existingSecret" -}}{{- end -}}
{{- if and (ne (include "weir.hasIdentities" .) "yes") (or $static.existingSecret $static.tokens $static.principals $static.accounts) -}}{{- $found = append $found (printf "identity.static, because identity.kind is %s and has no directory of kind file" .Values.identity.kind) -}}{{- end -}}
{{- if .Values.limits.existingConfigMap -}}
{{- if ne (toString .Values.limits.windowSeconds) "1" -}}{{- $found = append $found "limits.windowSeconds, because of limits.existingConfigMap" -}}{{- end -}}
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
{{- range list "from" "metricsFrom" "decisionsFrom" "egress" "apiServer" -}}
{{- if index $.Values.networkPolicy . -}}{{- $found = append $found (printf "networkPolicy.%s, because networkPolicy.enabled is false" .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.networkPolicy -}}
{{- if .enabled -}}
{{- if and .apiServer (not .egress) -}}{{- $found = append $found "networkPolicy.apiServer, because networkPolicy.egress is empty" -}}{{- end -}}
{{- if and .decisionsFrom (not $decisions.enabled) -}}{{- $found = append $found "networkPolicy.decisionsFrom, because decisions.enabled is false" -}}{{- end -}}
{{- if and .from (eq (include "weir.onlyDecides" $) "yes") -}}{{- $found = append $found "networkPolicy.from, because decisions.only leaves no port for clients" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $rule := .Values.metrics.prometheusRule -}}
{{- if and $rule.additionalRules (not $rule.enabled) -}}{{- $found = append $found "metrics.prometheusRule.additionalRules, because metrics.prometheusRule.enabled is false" -}}{{- end -}}
{{- $alerts := list -}}
{{- range (index (.Files.Get "rules/alerts.yaml" | fromYaml).groups 0).rules -}}{{- $alerts = append $alerts .alert -}}{{- end -}}
{{- range $rule.disabled -}}
{{- if not (has . $alerts) -}}{{- $found = append $found (printf "%s in metrics.prometheusRule.disabled, because no alert has this name" .) -}}{{- end -}}
{{- end -}}
{{- $scaling := .Values.autoscaling -}}
{{- if or $scaling.keda.enabled (not $scaling.enabled) -}}
{{- range $value, $set := dict "requestsPerSecond.averageValue" $scaling.requestsPerSecond.averageValue "eventLoopLag.averageValue" $scaling.eventLoopLag.averageValue "metrics" $scaling.metrics -}}
{{- if $set -}}{{- $found = append $found (printf "autoscaling.%s, because autoscaling.%s" $value (ternary "keda.enabled is true" "enabled is false" $scaling.enabled)) -}}{{- end -}}
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
