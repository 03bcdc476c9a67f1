/**
 * Makes the JSON schemas that the chart's manifests are checked against (`npx tsx test/helm/schemas/make.ts`).
 *
 * Their source is what the projects publish as Go modules, all under Apache-2.0: the OpenAPI document of Kubernetes, and
 * the custom resources of Gateway API, Prometheus Operator, KEDA and cert-manager. Descriptions are left out, and keys that a type
 * does not have are refused.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type JsonObject = { readonly [key: string]: Json };

const KUBERNETES = 'k8s.io/kubernetes@v1.34.1';
const KUBERNETES_TYPES: Readonly<Record<string, string>> = {
  'deployment-apps-v1': 'io.k8s.api.apps.v1.Deployment',
  'service-v1': 'io.k8s.api.core.v1.Service',
  'configmap-v1': 'io.k8s.api.core.v1.ConfigMap',
  'secret-v1': 'io.k8s.api.core.v1.Secret',
  'serviceaccount-v1': 'io.k8s.api.core.v1.ServiceAccount',
  'role-rbac-v1': 'io.k8s.api.rbac.v1.Role',
  'rolebinding-rbac-v1': 'io.k8s.api.rbac.v1.RoleBinding',
  'job-batch-v1': 'io.k8s.api.batch.v1.Job',
  'pod-v1': 'io.k8s.api.core.v1.Pod',
  'poddisruptionbudget-policy-v1': 'io.k8s.api.policy.v1.PodDisruptionBudget',
  'horizontalpodautoscaler-autoscaling-v2': 'io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler',
  'networkpolicy-networking-v1': 'io.k8s.api.networking.v1.NetworkPolicy',
  'ingress-networking-v1': 'io.k8s.api.networking.v1.Ingress',
};

const OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.85.0';
const OPERATOR_FOLDER = 'example/prometheus-operator-crd';
const CUSTOM_RESOURCES: Readonly<Record<string, readonly [module: string, file: string]>> = {
  'servicemonitor-monitoring-v1': [OPERATOR, `${OPERATOR_FOLDER}/monitoring.coreos.com_servicemonitors.yaml`],
  'podmonitor-monitoring-v1': [OPERATOR, `${OPERATOR_FOLDER}/monitoring.coreos.com_podmonitors.yaml`],
  'prometheusrule-monitoring-v1': [OPERATOR, `${OPERATOR_FOLDER}/monitoring.coreos.com_prometheusrules.yaml`],
  'httproute-gateway-v1': [
    'sigs.k8s.io/gateway-api@v1.4.0',
    'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml',
  ],
  'certificate-cert-manager-v1': [
    'github.com/cert-manager/cert-manager@v1.18.2',
    'deploy/crds/crd-certificates.yaml',
  ],
  'scaledobject-keda-v1alpha1': [
    'github.com/kedacore/keda/v2@v2.21.0',
    'config/crd/bases/keda.sh_scaledobjects.yaml',
  ],
};

function moduleFolder(module: string): string {
  const answer = execFileSync('go', ['mod', 'download', '-json', module], { encoding: 'utf8' });
  return (JSON.parse(answer) as { Dir: string }).Dir;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const KEPT = ['type', '$ref', 'required', 'enum', 'pattern', 'minimum', 'maximum', 'minLength', 'maxLength'];

/** A schema without words and vendor extensions, and closed where it lists its keys. */
function strict(schema: Json): Json {
  if (!isObject(schema)) return schema;
  if (schema.format === 'int-or-string' || schema['x-kubernetes-int-or-string'] === true) {
    return { type: ['string', 'integer'] };
  }
  const result: Record<string, Json> = {};
  for (const key of KEPT) if (schema[key] !== undefined) result[key] = schema[key];
  for (const key of ['items', 'additionalProperties']) {
    if (schema[key] !== undefined) result[key] = strict(schema[key]);
  }
  if (isObject(schema.properties)) {
    result.properties = mapValues(schema.properties, strict);
    const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true;
    if (!isOpen) result.additionalProperties ??= false;
  }
  return result;
}

function mapValues(object: JsonObject, change: (value: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}

/** The definitions that a schema leads to, itself included. */
function reachable(name: string, definitions: JsonObject, found: Record<string, Json> = {}): JsonObject {
  if (found[name] !== undefined) return found;
  // A quantity may be written as a number as well.
  const isQuantity = name.endsWith('resource.Quantity');
  found[name] = isQuantity ? { type: ['string', 'number'] } : strict(definitions[name] ?? {});
  for (const [, other = ''] of JSON.stringify(found[name]).matchAll(/#\/definitions\/([^"]+)/g)) {
    reachable(other, definitions, found);
  }
  return found;
}

function write(name: string, schema: Json): void {
  writeFileSync(join(import.meta.dirname, `${name}.json`), `${JSON.stringify(schema)}\n`);
}

const swagger = JSON.parse(
  readFileSync(join(moduleFolder(KUBERNETES), 'api/openapi-spec/swagger.json'), 'utf8'),
) as { definitions: JsonObject };
for (const [name, type] of Object.entries(KUBERNETES_TYPES)) {
  write(name, { $ref: `#/definitions/${type}`, definitions: reachable(type, swagger.definitions) });
}

interface CustomResource {
  readonly spec: {
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: JsonObject };
    }[];
  };
}
for (const [name, [module, file]] of Object.entries(CUSTOM_RESOURCES)) {
  const crd = load(readFileSync(join(moduleFolder(module), file), 'utf8')) as CustomResource;
  const version = crd.spec.versions.find((one) => one.name === name.split('-').at(-1));
  if (version === undefined) throw new Error(`${file} has no such version as ${name} asks for`);
  const { metadata: _, ...properties } = version.schema.openAPIV3Schema.properties as JsonObject;
  const schema = strict({ ...version.schema.openAPIV3Schema, properties }) as { properties: JsonObject };
  write(name, { ...schema, properties: { ...schema.properties, metadata: { type: 'object' } } });
}
