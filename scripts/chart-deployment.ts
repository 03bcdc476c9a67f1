import { type TSchema, Type } from 'typebox';
import { closed } from '../src/config/settings/section.ts';

/** Values that Kubernetes itself checks: any mapping, any list of mappings. */
const mapping = Type.Object({});
const mappings = Type.Array(mapping);
const texts = Type.Record(Type.String(), Type.String());
const text = Type.String();
const flag = Type.Boolean();
const name = Type.String({ minLength: 1 });
/** Of an object of Kubernetes, or empty. */
export const objectName = Type.String({ pattern: '^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$' });
/** The name of a namespace, or a part of a Service's name. */
const label = Type.String({ pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$' });
/** Of a ConfigMap or a Secret. */
export const dataKey = Type.String({ pattern: '^[A-Za-z0-9._-]+$' });
const count = (minimum: number) => Type.Integer({ minimum });
const port = Type.Integer({ minimum: 1, maximum: 65535 });
const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([Type.Null(), schema]);
/** Such as 500m or 1.5Gi, and not 512MB. */
const quantityIn = (units: string) =>
  Type.Union([
    Type.String({ pattern: `^[0-9]+(\\.[0-9]+)?([${units}]|[KMGTPE]i|[eE][-+]?[0-9]+)?$` }),
    Type.Number(),
  ]);
const quantity = quantityIn('numkMGTPE');
/** Such as 500m or 2. Of cores, 500 would be more than a machine has, and the pod would stay pending. */
const cores = Type.Union([
  Type.String({ pattern: '^([0-9]{1,2}(\\.[0-9]+)?|[0-9]+(\\.[0-9]+)?([num]|[eE]-[0-9]+))$' }),
  Type.Number({ exclusiveMaximum: 100 }),
]);
/** Such as 512Mi. Of bytes, 512m would be half of one. */
const bytes = quantityIn('kMGTPE');
/** A resource of Kubernetes, or one of a vendor, whose name has a domain. */
const quantities = {
  type: 'object',
  patternProperties: {
    '^cpu$': nullable(cores),
    '^.+/.+$': nullable(quantity),
    '^(memory|ephemeral-storage|hugepages-.+)$': nullable(bytes),
  },
  additionalProperties: false,
} as TSchema;
export const resources = Type.Object(
  {
    requests: Type.Optional(nullable(quantities)),
    limits: Type.Optional(nullable(quantities)),
    claims: Type.Optional(mappings),
  },
  { additionalProperties: false },
);
const digest = Type.String({ pattern: '^(sha256:[0-9a-f]{64})?$' });
const duration = Type.String({ pattern: '^(\\d+(ms|s|m|h))+$' });

const monitor = closed({
  enabled: flag,
  namespace: text,
  labels: texts,
  jobLabel: text,
  honorLabels: flag,
  namespaceSelector: mapping,
  interval: duration,
  scrapeTimeout: duration,
  tlsConfig: mapping,
  relabelings: mappings,
  metricRelabelings: mappings,
});

const byMetric = closed({ averageValue: nullable(quantity), metricName: name });

const autoscaling = closed({
  enabled: flag,
  minReplicas: count(1),
  maxReplicas: count(1),
  targetCPUUtilizationPercentage: nullable(count(1)),
  requestsPerSecond: byMetric,
  eventLoopLag: byMetric,
  metrics: mappings,
  behavior: mapping,
  keda: closed({ enabled: flag, prometheusAddress: text, requestsPerSecond: count(1), triggers: mappings }),
});

const service = closed({
  type: Type.Union([Type.Literal('ClusterIP'), Type.Literal('NodePort'), Type.Literal('LoadBalancer')]),
  port,
  nodePort: nullable(port),
  annotations: texts,
  labels: texts,
  externalTrafficPolicy: text,
  loadBalancerClass: text,
  loadBalancerSourceRanges: Type.Array(text),
  trafficDistribution: text,
  appProtocol: text,
  spec: mapping,
});

const hostName = Type.String({ pattern: '^((\\*\\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$' });
const ingressPath = closed({
  path: Type.String({ pattern: '^/' }),
  pathType: Type.Enum(['Prefix', 'Exact', 'ImplementationSpecific']),
});

const ingress = closed({
  enabled: flag,
  className: text,
  annotations: texts,
  hosts: Type.Array(closed({ host: Type.Optional(hostName), paths: Type.Optional(Type.Array(ingressPath)) })),
  tls: Type.Array(
    closed({ hosts: Type.Optional(Type.Array(hostName)), secretName: Type.Optional(objectName) }),
  ),
});

const probe = closed({
  initialDelaySeconds: count(0),
  periodSeconds: count(0),
  timeoutSeconds: count(0),
  terminationGracePeriodSeconds: count(0),
  successThreshold: count(1),
  failureThreshold: count(1),
  httpGet: mapping,
  tcpSocket: mapping,
  exec: mapping,
  grpc: mapping,
});

const variable = closed({ name, value: Type.Optional(text), valueFrom: Type.Optional(mapping) });

/** How many pods, as a number or as a percentage. */
const pods = Type.Union([count(0), Type.String({ pattern: '^[0-9]+%$' })]);

/** Of the repository of an image, such as registry.example.com:5000/team/weir, without a scheme and a tag. */
const REPOSITORY = '([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*';
const tag = Type.String({ pattern: '^([A-Za-z0-9_][A-Za-z0-9._-]{0,127}(@sha256:[0-9a-f]{64})?)?$' });

const httpRoute = closed({
  enabled: flag,
  annotations: texts,
  parentRefs: mappings,
  hostnames: Type.Array(text),
  matches: mappings,
  filters: mappings,
  timeouts: mapping,
});

const metrics = closed({
  service: closed({ enabled: flag, port, annotations: texts }),
  serviceMonitor: monitor,
  podMonitor: monitor,
  prometheusRule: closed({
    enabled: flag,
    namespace: text,
    labels: texts,
    disabled: Type.Array(name),
    additionalRules: mappings,
  }),
  dashboards: closed({ enabled: flag, labels: texts, annotations: texts }),
});

/** Schema of the chart's values for deployment and networking. */
export const deployment = {
  global: Type.Optional(mapping),
  nameOverride: label,
  fullnameOverride: label,
  namespaceOverride: label,
  commonLabels: texts,
  image: closed({
    registry: text,
    repository: Type.String({ pattern: `^${REPOSITORY}$` }),
    tag,
    digest,
    pullPolicy: Type.Union([Type.Literal('IfNotPresent'), Type.Literal('Always'), Type.Literal('Never')]),
  }),
  imagePullSecrets: mappings,
  settings: mapping,
  watch: closed({ enabled: flag, identities: flag }),
  rbac: closed({ create: flag }),
  check: closed({
    enabled: flag,
    onInstall: flag,
    timeoutSeconds: count(1),
    podLabels: texts,
    podAnnotations: texts,
    resources,
  }),
  tests: closed({
    existingSecret: closed({ name: objectName, key: dataKey }),
    path: Type.String({ pattern: '^/' }),
    account: text,
    maxRequests: count(0),
    podLabels: texts,
    podAnnotations: texts,
  }),
  replicaCount: nullable(count(0)),
  minReadySeconds: count(0),
  revisionHistoryLimit: count(0),
  updateStrategy: mapping,
  autoscaling,
  podDisruptionBudget: closed({
    enabled: flag,
    maxUnavailable: nullable(pods),
    minAvailable: nullable(pods),
    unhealthyPodEvictionPolicy: Type.Union([Type.Literal('AlwaysAllow'), Type.Literal('IfHealthyBudget')]),
  }),
  topologySpreadConstraints: mappings,
  affinity: mapping,
  nodeSelector: texts,
  tolerations: mappings,
  dnsPolicy: text,
  dnsConfig: mapping,
  hostAliases: mappings,
  priorityClassName: text,
  runtimeClassName: text,
  listenAddress: Type.Enum(['0.0.0.0', '::']),
  hostUsers: nullable(flag),
  resources,
  resizePolicy: Type.Array(
    closed({
      resourceName: Type.Enum(['cpu', 'memory']),
      restartPolicy: Type.Optional(Type.Enum(['NotRequired', 'RestartContainer'])),
    }),
  ),
  podSecurityContext: mapping,
  securityContext: mapping,
  serviceAccount: closed({ create: flag, name: objectName, annotations: texts }),
  livenessProbe: probe,
  readinessProbe: probe,
  startupProbe: probe,
  drainSeconds: Type.Integer({ minimum: 3, maximum: 3600 }),
  lifecycle: mapping,
  deploymentAnnotations: texts,
  deploymentLabels: texts,
  podAnnotations: texts,
  podLabels: texts,
  extraEnv: Type.Array(variable),
  extraEnvFrom: mappings,
  extraVolumes: mappings,
  extraVolumeMounts: mappings,
  extraContainers: mappings,
  initContainers: mappings,
  extraObjects: Type.Array(Type.Union([text, mapping])),
  service,
  additionalServices: Type.Record(Type.String({ pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$' }), service, {
    additionalProperties: false,
  }),
  telemetry: closed({
    endpoint: Type.String({ pattern: '^(https?://.+)?$' }),
    traces: flag,
    metrics: flag,
    // Helm's --set passes fractions as text.
    sampleRatio: nullable(
      Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.String({ pattern: '^(0|0\\.\\d+|1)$' })]),
    ),
    headersSecret: closed({ name: objectName, key: dataKey }),
    env: Type.Record(Type.String({ pattern: '^OTEL_[A-Z_]+$' }), Type.Union([text, Type.Number(), flag]), {
      additionalProperties: false,
    }),
  }),
  ingress,
  gatewayAPI: closed({ httpRoute }),
  networkPolicy: closed({
    enabled: flag,
    from: mappings,
    metricsFrom: mappings,
    decisionsFrom: mappings,
    egress: mappings,
    apiServer: mappings,
  }),
  metrics,
  platform: closed({
    enabled: flag,
    image: closed({ repository: Type.String({ pattern: `^(${REPOSITORY})?$` }), tag, digest }),
    resources,
  }),
};
