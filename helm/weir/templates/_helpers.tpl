{{- define "weir.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "weir.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "weir.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "weir.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "weir.selectorLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "weir.labels" -}}
{{ include "weir.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Selects only the gateway's pods. The demo's other pods have the release's labels too. */}}
{{- define "weir.gatewaySelector" -}}
{{ include "weir.selectorLabels" . }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- define "weir.image" -}}
{{- $repository := compact (list .Values.image.registry .Values.image.repository) | join "/" -}}
{{- /* A published chart names its own image by digest. */ -}}
{{- $released := "" -}}
{{- with .Chart.Annotations }}{{ $released = index . "image" | default "" }}{{ end -}}
{{- if and (not .Values.image.digest) (not .Values.image.tag) (hasPrefix (printf "%s@" $repository) $released) -}}
{{- $released -}}
{{- else if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Without values of its own: the gateway's repository with `-platform`, and the same tag. */}}
{{- define "weir.platformImage" -}}
{{- $own := default dict .Values.platform.image -}}
{{- $repository := compact (list .Values.image.registry (default (printf "%s-platform" .Values.image.repository) $own.repository)) | join "/" -}}
{{- if $own.digest -}}
{{- printf "%s@%s" $repository $own.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (coalesce $own.tag .Values.image.tag .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "weir.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "weir.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* "yes" if pods share their counts. */}}
{{- define "weir.hasRedis" -}}
{{- $redis := .Values.redis -}}
{{- if or $redis.url $redis.nodes $redis.sentinels $redis.dev.enabled (and $redis.existingSecret.name $redis.existingSecret.urlKey) -}}yes{{- end -}}
{{- end -}}

{{/* A URL that may contain a password and must be stored in a Secret. */}}
{{- define "weir.hasSecretUrl" -}}
{{- if and (eq .Values.redis.mode "standalone") (contains "@" .Values.redis.url) -}}yes{{- end -}}
{{- end -}}

{{- /* The Secret with the admin token; empty where there is no token. Values of earlier charts have no `admin`. */ -}}
{{- define "weir.adminSecret" -}}
{{- $admin := default dict .Values.admin -}}
{{- default (ternary (printf "%s-admin" (include "weir.fullname" .)) "" (not (empty $admin.token))) (dig "existingSecret" "name" "" $admin) -}}
{{- end -}}
{{- define "weir.adminSecretKey" -}}
{{- $admin := default dict .Values.admin -}}
{{- ternary (dig "existingSecret" "key" "token" $admin) "token" (not (empty (dig "existingSecret" "name" "" $admin))) -}}
{{- end -}}
{{- define "weir.makesAdminSecret" -}}
{{- $admin := default dict .Values.admin -}}
{{- if and $admin.token (not (dig "existingSecret" "name" "" $admin)) -}}yes{{- end -}}
{{- end -}}

{{/* "yes" if the admin port has no token, and no variable may set one: it answers most requests with a 403. */}}
{{- define "weir.lacksAdminToken" -}}
{{- $own := default dict (include "weir.settings" . | fromYaml).admin -}}
{{- $isSet := or (include "weir.adminSecret" .) $own.token $own.tokenFile .Values.extraEnvFrom (contains "WEIR_ADMIN_TOKEN" (toJson .Values.extraEnv)) -}}
{{- if not $isSet -}}yes{{- end -}}
{{- end -}}

{{/* The Secret with the certificate; empty where the ports speak HTTP. Values of earlier charts have no `tls`. */}}
{{- define "weir.tlsSecret" -}}
{{- $tls := default dict .Values.tls -}}
{{- if $tls.enabled -}}{{- default (printf "%s-tls" (include "weir.fullname" .)) $tls.existingSecret -}}{{- end -}}
{{- end -}}
{{- define "weir.clientCaSecret" -}}
{{- $tls := default dict .Values.tls -}}
{{- if $tls.enabled -}}{{- dig "clientCa" "existingSecret" "" $tls -}}{{- end -}}
{{- end -}}
{{/* http or https, on the port for clients and on the others. `settings` may have a certificate too. */}}
{{- define "weir.scheme" -}}{{- include "weir.schemeOf" (list . "listen" true) -}}{{- end -}}
{{- define "weir.adminScheme" -}}{{- include "weir.schemeOf" (list . "admin" (default dict .Values.tls).admin) -}}{{- end -}}
{{- define "weir.decisionsScheme" -}}{{- include "weir.schemeOf" (list . "decisions" (default dict .Values.tls).decisions) -}}{{- end -}}
{{/* Of a list: the root, the section of weir.yaml that has the port, and whether the port has the certificate of `tls`. */}}
{{- define "weir.schemeOf" -}}
{{- $root := index . 0 -}}
{{- $hasShared := and (ne (include "weir.tlsSecret" $root) "") (eq (toString (index . 2)) "true") -}}
{{- $own := dig (index . 1) "tls" dict (default dict $root.Values.settings) -}}
{{- ternary "https" "http" (or $hasShared (not (empty $own))) -}}
{{- end -}}
{{/* "yes" if the pods have no port for clients. */}}
{{- define "weir.onlyDecides" -}}
{{- $decisions := default dict .Values.decisions -}}
{{- if and $decisions.enabled $decisions.only -}}yes{{- end -}}
{{- end -}}
{{/* "yes" if the pods have a port for Envoy's rate limit service. */}}
{{- define "weir.servesEnvoy" -}}
{{- $decisions := default dict .Values.decisions -}}
{{- if and $decisions.enabled (dig "envoy" "enabled" false $decisions) -}}yes{{- end -}}
{{- end -}}
{{/* The names of the Services in the cluster. */}}
{{- define "weir.serviceNames" -}}
{{- $services := list "" -}}
{{- if eq (include "weir.decisionsScheme" .) "https" -}}{{- $services = append $services "-decisions" -}}{{- end -}}
{{- range $name, $_ := default dict .Values.additionalServices -}}{{- $services = append $services (printf "-%s" $name) -}}{{- end -}}
{{- $names := list -}}
{{- range $services -}}
{{- $name := printf "%s%s.%s" (include "weir.fullname" $) . (include "weir.namespace" $) -}}
{{- $names = concat $names (list (printf "%s.svc" $name) $name (printf "%s.svc.cluster.local" $name)) -}}
{{- end -}}
{{- toYaml $names -}}
{{- end -}}

{{- define "weir.replicas" -}}
{{- if kindIs "invalid" .Values.replicaCount -}}
{{- ternary 2 1 (eq (include "weir.hasRedis" .) "yes") -}}
{{- else -}}
{{- int .Values.replicaCount -}}
{{- end -}}
{{- end -}}

{{/*
The Deployment's replicas; empty to omit the field. An upgrade keeps the number of running pods that an autoscaler or
`kubectl scale` has set: omitting the field would set it to 1, and another number would cause a conflict.
*/}}
{{- define "weir.deploymentReplicas" -}}
{{- $live := dig "spec" "replicas" nil (lookup "apps/v1" "Deployment" (include "weir.namespace" .) (include "weir.fullname" .)) -}}
{{- $own := int (include "weir.replicas" .) -}}
{{- if .Values.autoscaling.enabled -}}
{{- if not (kindIs "invalid" $live) -}}{{- int $live -}}{{- end -}}
{{- else if and (kindIs "invalid" .Values.replicaCount) (eq (include "weir.hasRedis" .) "yes") -}}
{{- max $own (int $live) -}}
{{- else -}}
{{- $own -}}
{{- end -}}
{{- end -}}

{{/* The number of pods that always run. */}}
{{- define "weir.leastReplicas" -}}
{{- ternary (int .Values.autoscaling.minReplicas) (int (include "weir.replicas" .)) .Values.autoscaling.enabled -}}
{{- end -}}

{{/* "yes" if there is a PodDisruptionBudget: of a single pod, it would only keep its node from being drained. */}}
{{- define "weir.hasDisruptionBudget" -}}
{{- if and .Values.podDisruptionBudget.enabled (gt (int (include "weir.leastReplicas" .)) 1) -}}yes{{- end -}}
{{- end -}}

{{/* "yes" if the PodDisruptionBudget lets no pod be evicted while no more of them run. */}}
{{- define "weir.blocksDrains" -}}
{{- $budget := .Values.podDisruptionBudget -}}
{{- $kept := toString $budget.minAvailable -}}
{{- if eq (include "weir.hasDisruptionBudget" .) "yes" -}}
{{- if kindIs "invalid" $budget.minAvailable -}}
{{- if has (toString $budget.maxUnavailable) (list "0" "0%") -}}yes{{- end -}}
{{- else if or (eq $kept "100%") (and (not (hasSuffix "%" $kept)) (ge (int $kept) (int (include "weir.leastReplicas" .)))) -}}yes
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The number of pods that may run: the value if it is set, else the maximum of the autoscaler, else the replicas of the values. It does not follow
the live number: after `kubectl scale`, an upgrade that changes only limits would restart all pods. The setting has bounds of 1 and 1000.
*/}}
{{- define "weir.expectedReplicas" -}}
{{- if not (kindIs "invalid" .Values.redis.expectedReplicas) -}}
{{- int .Values.redis.expectedReplicas -}}
{{- else if .Values.autoscaling.enabled -}}
{{- max 1 (min 1000 (int .Values.autoscaling.maxReplicas)) -}}
{{- else -}}
{{- max 1 (min 1000 (int (include "weir.replicas" .))) -}}
{{- end -}}
{{- end -}}

{{/* Refuses limits of single owners and of plans that are neither buckets nor further limits, because the schema does not know these names. */}}
{{- define "weir.validateLimitNames" -}}
{{- $limits := default dict .Values.limits -}}
{{- $further := default dict $limits.limits -}}
{{- range $section := list "accounts" "organizations" "addresses" "principals" "plans" -}}
{{- range $owner, $entry := default dict (index $limits $section) -}}
{{- range $name, $_ := default dict $entry -}}
{{- if not (or (hasKey $further $name) (has $name (list "until" "plan" "periodStartsOn")) (regexMatch "^(account|organization|person|address)-(read|write)$" $name)) -}}
{{- fail (printf "at '/limits/%s/%s': '%s' is neither a bucket nor one of limits.limits" $section $owner $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Conflicts between values that the schema cannot detect. */}}
{{- define "weir.validate" -}}
{{- include "weir.validateLimitNames" . -}}
{{- $redis := .Values.redis -}}
{{- if ne (include "weir.hasRedis" .) "yes" -}}
{{- if or .Values.autoscaling.enabled (gt (int (include "weir.replicas" .)) 1) -}}
{{- fail "several pods must share their counts: set redis.url (or redis.nodes, redis.sentinels, redis.existingSecret.urlKey, redis.dev.enabled), or run one pod" -}}
{{- end -}}
{{- end -}}
{{- if and (eq $redis.mode "cluster") (not $redis.nodes) -}}{{- fail "redis.mode cluster needs redis.nodes" -}}{{- end -}}
{{- if and (eq $redis.mode "sentinel") (not (and $redis.sentinels $redis.name)) -}}{{- fail "redis.mode sentinel needs redis.sentinels and redis.name" -}}{{- end -}}
{{- if and (ne $redis.mode "standalone") (or $redis.url $redis.existingSecret.urlKey $redis.dev.enabled) -}}{{- fail (printf "redis.url, redis.existingSecret.urlKey and redis.dev belong to redis.mode standalone, not %s" $redis.mode) -}}{{- end -}}
{{- if and (eq $redis.mode "standalone") (or $redis.nodes $redis.sentinels) -}}{{- fail "redis.nodes belongs to redis.mode cluster, redis.sentinels to redis.mode sentinel" -}}{{- end -}}
{{- range $redis.nodes -}}
{{- if contains "@" . -}}{{- fail "redis.nodes must not contain passwords: use redis.existingSecret" -}}{{- end -}}
{{- end -}}
{{- range $redis.sentinels -}}
{{- if contains "@" . -}}{{- fail "redis.sentinels must not contain passwords: redis.existingSecret has the password of Redis. For a password of the Sentinels, set WEIR_STORE_SENTINELS by extraEnv, from a Secret" -}}{{- end -}}
{{- end -}}
{{- $tls := default dict .Values.tls -}}
{{- if and $tls.enabled (not $tls.existingSecret) (not (dig "certManager" "enabled" false $tls)) -}}{{- fail "tls.enabled needs tls.existingSecret or tls.certManager.enabled" -}}{{- end -}}
{{- if and $tls.enabled $tls.existingSecret (dig "certManager" "enabled" false $tls) -}}{{- fail "tls.existingSecret and tls.certManager.enabled exclude each other" -}}{{- end -}}
{{- if and $tls.enabled (dig "certManager" "enabled" false $tls) (not (dig "certManager" "issuerRef" "name" "" $tls)) -}}{{- fail "tls.certManager needs tls.certManager.issuerRef.name" -}}{{- end -}}
{{- if and (dig "envoy" "enabled" false (default dict .Values.decisions)) (ne (include "weir.servesEnvoy" .) "yes") -}}{{- fail "decisions.envoy.enabled needs decisions.enabled" -}}{{- end -}}
{{- if and (eq (include "weir.servesEnvoy" .) "yes") (not .Values.decisions.envoy.rules) (not .Values.decisions.envoy.existingConfigMap) -}}{{- fail "decisions.envoy.enabled needs decisions.envoy.rules or decisions.envoy.existingConfigMap" -}}{{- end -}}
{{- $urls := list -}}
{{- if $redis.url -}}{{- $urls = append $urls "redis.url" -}}{{- end -}}
{{- if $redis.existingSecret.urlKey -}}{{- $urls = append $urls "redis.existingSecret.urlKey" -}}{{- end -}}
{{- if $redis.dev.enabled -}}{{- $urls = append $urls "redis.dev.enabled" -}}{{- end -}}
{{- if gt (len $urls) 1 -}}{{- fail (printf "%s: set one of them, because each names a Redis" (join " and " $urls)) -}}{{- end -}}
{{- range $section, $keys := dict "redis" (list "urlKey" "usernameKey" "passwordKey") "identity" (list "clientSecretKey" "directoryTokenKey") -}}
{{- $value := printf "%s.existingSecret" $section -}}
{{- $secret := default dict (index $.Values $section).existingSecret -}}
{{- $set := list -}}
{{- range $keys -}}{{- if index $secret . -}}{{- $set = append $set . -}}{{- end -}}{{- end -}}
{{- if and $set (not $secret.name) -}}{{- fail (printf "%s.%s needs %s.name" $value (first $set) $value) -}}{{- end -}}
{{- if and $secret.name (not $set) -}}{{- fail (printf "%s.name needs the keys that the Secret has: %s.%s" $value $value (join (printf " or %s." $value) $keys)) -}}{{- end -}}
{{- end -}}
{{- $labels := dict "commonLabels" .Values.commonLabels "podLabels" .Values.podLabels "check.podLabels" (default dict .Values.check).podLabels "tests.podLabels" (default dict .Values.tests).podLabels -}}
{{- range $value, $given := $labels -}}
{{- range list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" -}}
{{- if hasKey (default dict $given) . -}}{{- fail (printf "%s: the chart sets the label %s" $value .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name := list "serviceMonitor" "podMonitor" -}}
{{- $monitor := index $.Values.metrics $name -}}
{{- $start := toDate "2006-01-02" "2026-01-01" -}}
{{- if and $monitor.enabled $monitor.interval $monitor.scrapeTimeout (($start | dateModify $monitor.interval).Before ($start | dateModify $monitor.scrapeTimeout)) -}}
{{- fail (printf "metrics.%s.scrapeTimeout (%s) is longer than its interval (%s), which the Prometheus operator refuses" $name $monitor.scrapeTimeout $monitor.interval) -}}
{{- end -}}
{{- end -}}
{{- if and (default dict .Values.decisions).only (ne (include "weir.onlyDecides" .) "yes") -}}{{- fail "decisions.only needs decisions.enabled" -}}{{- end -}}
{{- if and (eq (include "weir.onlyDecides" .) "yes") (or .Values.ingress.enabled .Values.gatewayAPI.httpRoute.enabled) -}}{{- fail "decisions.only leaves no port for clients: ingress.enabled and gatewayAPI.httpRoute.enabled must be false" -}}{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}{{- fail "ingress.enabled needs ingress.hosts" -}}{{- end -}}
{{- if and .Values.gatewayAPI.httpRoute.enabled (not .Values.gatewayAPI.httpRoute.parentRefs) -}}{{- fail "gatewayAPI.httpRoute.enabled needs gatewayAPI.httpRoute.parentRefs" -}}{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.service.enabled) -}}{{- fail "metrics.serviceMonitor needs metrics.service.enabled; metrics.podMonitor does not need it" -}}{{- end -}}
{{- range $kind, $keys := dict "jwt" (list "issuer" "audience") "introspection" (list "url" "clientId") -}}
{{- range $keys -}}
{{- if and (eq $.Values.identity.kind $kind) (not (index $.Values.identity $kind .)) -}}{{- fail (printf "identity.kind %s needs identity.%s.%s" $kind $kind .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}{{- fail (printf "autoscaling.minReplicas (%d) is above autoscaling.maxReplicas (%d)" (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}{{- end -}}
{{- $telemetry := default dict .Values.telemetry -}}
{{- if and (or (dig "headersSecret" "name" "" $telemetry) $telemetry.env) (not $telemetry.endpoint) -}}{{- fail "telemetry needs telemetry.endpoint" -}}{{- end -}}
{{- range $name, $_ := default dict .Values.additionalServices -}}
{{- if has $name (list "metrics" "decisions" "platform" "redis" "check" "test") -}}{{- fail (printf "additionalServices.%s: the chart uses this name" $name) -}}{{- end -}}
{{- end -}}
{{- if and .Values.additionalServices (eq (include "weir.onlyDecides" .) "yes") -}}{{- fail "decisions.only leaves no port for clients: additionalServices must be empty" -}}{{- end -}}
{{- $scaling := .Values.autoscaling -}}
{{- if and $scaling.enabled (not $scaling.keda.enabled) (not (or $scaling.targetCPUUtilizationPercentage $scaling.requestsPerSecond.averageValue $scaling.eventLoopLag.averageValue $scaling.metrics)) -}}{{- fail "autoscaling.enabled needs a metric: without one, Kubernetes scales by CPU. Set targetCPUUtilizationPercentage, requestsPerSecond, eventLoopLag or metrics" -}}{{- end -}}
{{- if and (eq (include "weir.hasDisruptionBudget" .) "yes") (kindIs "invalid" .Values.podDisruptionBudget.minAvailable) (kindIs "invalid" .Values.podDisruptionBudget.maxUnavailable) -}}{{- fail "podDisruptionBudget needs maxUnavailable or minAvailable" -}}{{- end -}}
{{- if and (ne (include "weir.onlyDecides" .) "yes") (eq (toString (dig "listen" "port" "" (default dict .Values.settings))) "off") -}}{{- fail "settings.listen.port off: set decisions.only, which leaves out the Service as well" -}}{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "weir.fullname" .)) -}}{{- fail (printf "%s is not a name that a Service can have, which begins with a letter and has lower-case letters, digits and hyphens: set fullnameOverride" (include "weir.fullname" .)) -}}{{- end -}}
{{- $strategy := .Values.updateStrategy -}}
{{- $rolling := default dict $strategy.rollingUpdate -}}
{{- if and (ne (toString $strategy.type) "Recreate") (has (toString $rolling.maxSurge) (list "0" "0%")) (has (toString $rolling.maxUnavailable) (list "0" "0%")) -}}{{- fail "updateStrategy.rollingUpdate.maxSurge and maxUnavailable are both 0, so no pod could be replaced: without a further pod, set maxUnavailable to 1" -}}{{- end -}}
{{- $adminHost := (include "weir.settings" . | fromYaml).admin.host | toString -}}
{{- if regexMatch "^(127\\.|localhost$|::1$)" $adminHost -}}{{- fail (printf "settings.admin.host is %s, where no probe reaches the pods, so Kubernetes would restart them again and again: to keep others from the admin port, set admin.existingSecret or networkPolicy.metricsFrom" $adminHost) -}}{{- end -}}
{{- if and .Values.autoscaling.keda.enabled (not .Values.autoscaling.enabled) -}}{{- fail "autoscaling.keda.enabled needs autoscaling.enabled" -}}{{- end -}}
{{- if and .Values.autoscaling.keda.enabled (not .Values.autoscaling.keda.prometheusAddress) (not .Values.autoscaling.keda.triggers) -}}{{- fail "autoscaling.keda needs prometheusAddress or triggers" -}}{{- end -}}
{{- end -}}

{{- define "weir.store" -}}
{{- $redis := .Values.redis -}}
{{- $store := dict "keyPrefix" $redis.keyPrefix "deadlineMs" (int $redis.deadlineMs) "onStoreFailure" $redis.onStoreFailure -}}
{{- if ne (include "weir.hasRedis" .) "yes" -}}
{{- $_ := set $store "kind" "memory" -}}
{{- else if eq $redis.mode "cluster" -}}
{{- $_ := set $store "kind" "cluster" -}}
{{- $_ := set $store "nodes" $redis.nodes -}}
{{- else if eq $redis.mode "sentinel" -}}
{{- $_ := set $store "kind" "sentinel" -}}
{{- $_ := set $store "sentinels" $redis.sentinels -}}
{{- $_ := set $store "name" $redis.name -}}
{{- else -}}
{{- $_ := set $store "kind" "redis" -}}
{{- if $redis.dev.enabled -}}
{{- $_ := set $store "url" (printf "redis://%s-redis:6379" (include "weir.fullname" .)) -}}
{{- else if and $redis.url (ne (include "weir.hasSecretUrl" .) "yes") -}}
{{- $_ := set $store "url" $redis.url -}}
{{- end -}}
{{- end -}}
{{- if and $redis.tls.enabled (ne $store.kind "memory") -}}
{{- $tls := dict -}}
{{- if $redis.tls.existingSecret -}}
{{- range $setting, $key := dict "caFile" $redis.tls.caKey "certFile" $redis.tls.certKey "keyFile" $redis.tls.keyKey -}}
{{- if $key -}}{{- $_ := set $tls $setting (printf "/etc/weir/redis-tls/%s" $key) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $redis.tls.serverName -}}{{- $_ := set $tls "serverName" $redis.tls.serverName -}}{{- end -}}
{{- $_ := set $store "tls" $tls -}}
{{- end -}}
{{- toYaml $store -}}
{{- end -}}

{{- define "weir.identity" -}}
{{- $file := printf "/etc/weir/identities/%s" .Values.identity.static.key -}}
{{- $kind := .Values.identity.kind -}}
{{- $identity := dict "kind" $kind -}}
{{- if ne $kind "static" -}}
{{- $identity = merge $identity (deepCopy (default dict (get .Values.identity $kind))) -}}
{{- end -}}
{{- if has $kind (list "static" "api-keys") -}}
{{- $_ := set $identity "file" $file -}}
{{- else if and (eq (include "weir.hasIdentities" .) "yes") (not $identity.directory.file) -}}
{{- $_ := set $identity.directory "file" $file -}}
{{- end -}}
{{- toYaml $identity -}}
{{- end -}}

{{/* "yes" if the identities file is read: by the kinds static and api-keys, or as the directory of the others. */}}
{{- define "weir.hasIdentities" -}}
{{- $kind := .Values.identity.kind -}}
{{- if has $kind (list "static" "api-keys") -}}yes{{- else -}}
{{- with (default dict (get .Values.identity $kind)).directory }}{{ if eq .kind "file" }}yes{{ end }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The values of `operations` that are part of weir.yaml, without null values. */}}
{{- define "weir.operationSettings" -}}
{{- $set := dict -}}
{{- range $key, $value := omit .Values.operations "openapi" "existingConfigMap" "key" -}}
{{- if not (kindIs "invalid" $value) -}}{{- $_ := set $set $key $value -}}{{- end -}}
{{- end -}}
{{- toYaml $set -}}
{{- end -}}

{{/* "yes" if the operations come from the platform's own document, which is part of the gateway's image. */}}
{{- define "weir.hasPlatformPrices" -}}
{{- if and .Values.platform.enabled (not .Values.operations.openapi) (not .Values.operations.existingConfigMap) -}}yes{{- end -}}
{{- end -}}

{{/* The objects that a pod watches through the API server: `kubernetes.watch` in weir.yaml. */}}
{{- define "weir.watched" -}}
{{- $watch := default dict .Values.watch -}}
{{- $objects := list -}}
{{- if ne (get $watch "enabled" | toString) "false" -}}
{{- $objects = append $objects (dict "kind" "ConfigMap" "name" (include "weir.limitsConfigMap" .) "folder" "/etc/weir/limits") -}}
{{- if ne (include "weir.hasPlatformPrices" .) "yes" -}}
{{- $objects = append $objects (dict "kind" "ConfigMap" "name" (include "weir.operationsConfigMap" .) "folder" "/etc/weir/operations") -}}
{{- end -}}
{{- range .Values.limits.overrideConfigMaps -}}
{{- $objects = append $objects (dict "kind" "ConfigMap" "name" . "folder" (printf "/etc/weir/overrides/%s" .)) -}}
{{- end -}}
{{- if eq (include "weir.servesEnvoy" .) "yes" -}}
{{- $objects = append $objects (dict "kind" "ConfigMap" "name" (include "weir.descriptorsConfigMap" .) "folder" "/etc/weir/descriptors") -}}
{{- end -}}
{{- if and $watch.identities (eq (include "weir.hasIdentities" .) "yes") -}}
{{- $objects = append $objects (dict "kind" "Secret" "name" (include "weir.identitiesSecret" .) "folder" "/etc/weir/identities") -}}
{{- end -}}
{{- end -}}
{{- toYaml $objects -}}
{{- end -}}

{{/* "yes" if the pods watch objects, and no NetworkPolicy keeps them from the API server. */}}
{{- define "weir.watches" -}}
{{- $policy := .Values.networkPolicy -}}
{{- $isBlocked := and $policy.enabled $policy.egress (not $policy.apiServer) -}}
{{- if and (include "weir.watched" . | fromYamlArray) (not $isBlocked) -}}yes{{- end -}}
{{- end -}}

{{/* The address of every port. Values of earlier charts have none: the settings' own default is the loopback address, which no probe reaches. */}}
{{- define "weir.listenAddress" -}}{{- default "0.0.0.0" .Values.listenAddress -}}{{- end -}}

{{/* weir.yaml */}}
{{- define "weir.settings" -}}
{{- $overrides := list -}}
{{- range .Values.limits.overrideConfigMaps -}}
{{- $overrides = append $overrides (printf "/etc/weir/overrides/%s" .) -}}
{{- end -}}
{{- $upstream := deepCopy .Values.upstream -}}
{{- if .Values.platform.enabled -}}
{{- $_ := set $upstream "url" (printf "http://%s-platform:3000" (include "weir.fullname" .)) -}}
{{- end -}}
{{- $openapi := printf "/etc/weir/operations/%s" .Values.operations.key -}}
{{- if eq (include "weir.hasPlatformPrices" .) "yes" -}}
{{- $openapi = "/app/platform/openapi.yaml" -}}
{{- end -}}
{{- $settings := dict
  "baseUrl" .Values.baseUrl
  "listen" (merge (dict "host" (include "weir.listenAddress" .) "port" 8080 "trustedProxies" .Values.trustedProxies) .Values.server)
  "shutdown" (dict "drainDelaySeconds" (div .Values.drainSeconds 3) "graceSeconds" (sub .Values.drainSeconds (div .Values.drainSeconds 3)))
  "admin" (dict "host" (include "weir.listenAddress" .) "port" 9090)
  "upstream" $upstream
  "store" (include "weir.store" . | fromYaml)
  "identity" (include "weir.identity" . | fromYaml)
  "operations" (merge (dict "openapi" $openapi) (include "weir.operationSettings" . | fromYaml))
  "limits" (dict "file" (printf "/etc/weir/limits/%s" .Values.limits.key) "overrides" $overrides)
  "log" (ternary .Values.log (omit .Values.log "fields") (not (empty .Values.log.fields)))
-}}
{{- $tls := default dict .Values.tls -}}
{{- if include "weir.tlsSecret" . -}}
{{- $pair := dict "certFile" (printf "/etc/weir/tls/%s" $tls.certKey) "keyFile" (printf "/etc/weir/tls/%s" $tls.keyKey) -}}
{{- /* Each port has a copy: what `settings` has for one of them must not change the others. */ -}}
{{- if $tls.admin -}}{{- $_ := set $settings.admin "tls" (deepCopy $pair) -}}{{- end -}}
{{- if include "weir.clientCaSecret" . -}}{{- $pair = set $pair "clientCaFile" (printf "/etc/weir/client-ca/%s" $tls.clientCa.key) -}}{{- end -}}
{{- $_ := set $settings.listen "tls" $pair -}}
{{- end -}}
{{- $decisions := default dict .Values.decisions -}}
{{- if $decisions.enabled -}}
{{- if not $decisions.trusted }}{{ fail "decisions.trusted: list the addresses of the proxies that ask, such as the range of the pods" }}{{ end -}}
{{- $_ := set $settings "decisions" (dict "host" (include "weir.listenAddress" .) "port" $decisions.port "trusted" $decisions.trusted "deniedStatus" $decisions.deniedStatus "extAuthzPrefix" $decisions.extAuthzPrefix) -}}
{{- if and $tls.decisions $settings.listen.tls -}}{{- $_ := set $settings.decisions "tls" (deepCopy $settings.listen.tls) -}}{{- end -}}
{{- if eq (include "weir.servesEnvoy" .) "yes" -}}
{{- $_ := set $settings.decisions "envoy" (dict "port" $decisions.envoy.port "headers" $decisions.envoy.headers "files" (list "/etc/weir/descriptors")) -}}
{{- end -}}
{{- end -}}
{{- if eq (include "weir.onlyDecides" .) "yes" -}}{{- $_ := set (unset $settings.listen "tls") "port" "off" -}}{{- end -}}
{{- with include "weir.watched" . | fromYamlArray -}}
{{- $_ := set $settings "kubernetes" (dict "watch" .) -}}
{{- end -}}
{{- $settings = mergeOverwrite $settings (deepCopy .Values.settings) -}}
{{- if and (eq (toString $settings.store.onStoreFailure) "share") (not (hasKey $settings.store "expectedReplicas")) -}}
{{- $_ := set $settings.store "expectedReplicas" (int (include "weir.expectedReplicas" .)) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The data whose change requires a restart: the process settings, and the Redis URL if the chart stores it. */}}
{{- define "weir.settingsChecksum" -}}
{{- printf "%s %s" (include "weir.settings" .) (ternary .Values.redis.url "" (eq (include "weir.hasSecretUrl" .) "yes")) | sha256sum -}}
{{- end -}}

{{- define "weir.limitsConfigMap" -}}
{{- default (printf "%s-limits" (include "weir.fullname" .)) .Values.limits.existingConfigMap -}}
{{- end -}}
{{- define "weir.descriptorsConfigMap" -}}
{{- default (printf "%s-descriptors" (include "weir.fullname" .)) .Values.decisions.envoy.existingConfigMap -}}
{{- end -}}
{{- define "weir.operationsConfigMap" -}}
{{- default (printf "%s-operations" (include "weir.fullname" .)) .Values.operations.existingConfigMap -}}
{{- end -}}
{{- define "weir.identitiesSecret" -}}
{{- default (printf "%s-identities" (include "weir.fullname" .)) .Values.identity.static.existingSecret -}}
{{- end -}}
