import { type TProperties, type TSchema, Type } from 'typebox';
import { identitiesSchema } from '../src/config/files/identities/parse-identities.ts';
import { anyLimit, limitsSchema, ROW_NAME } from '../src/config/files/limits/limits-schema.ts';
import { asNode, kindOf, type SchemaNode } from '../src/config/reader/schema-node.ts';
import { closed } from '../src/config/settings/section.ts';
import { settingsSchema } from '../src/config/settings/settings.ts';
import { storeSchema } from '../src/config/settings/store-settings.ts';
import { dataKey, deployment, objectName, resources } from './chart-deployment.ts';

/** The value, or an empty string, which charts use for text that is not set. */
const orEmpty = (schema: TSchema) => Type.Union([Type.Literal(''), schema]);

const { keyPrefix, deadlineMs, onStoreFailure, expectedReplicas } = storeSchema.anyOf[0].properties;
const { url } = storeSchema.anyOf[1].properties;

const redis = closed({
  mode: Type.Union([Type.Literal('standalone'), Type.Literal('sentinel'), Type.Literal('cluster')]),
  url: orEmpty(url),
  nodes: Type.Array(url),
  sentinels: Type.Array(url),
  name: Type.String(),
  existingSecret: closed({
    name: objectName,
    urlKey: Type.String(),
    usernameKey: Type.String(),
    passwordKey: Type.String(),
  }),
  tls: closed({
    enabled: Type.Boolean(),
    existingSecret: objectName,
    caKey: Type.String(),
    certKey: Type.String(),
    keyKey: Type.String(),
    serverName: Type.String(),
  }),
  keyPrefix,
  deadlineMs,
  onStoreFailure,
  expectedReplicas: Type.Union([Type.Null(), expectedReplicas]),
  dev: closed({ enabled: Type.Boolean(), image: Type.String(), resources }),
});

/** The schema of weir.yaml for these keys. None of them is required, and secrets are excluded, because this is a ConfigMap. */
function passedOn(schema: SchemaNode, leftOut: readonly string[] = []): TSchema {
  const entries = Object.entries(schema.properties ?? {}).filter(
    ([key, property]) => !property.secret && !leftOut.includes(key),
  );
  const properties = Object.fromEntries(entries);
  return { type: 'object', properties, additionalProperties: false } as TSchema;
}

/** `identity.<kind>` has the settings of that kind in weir.yaml. The chart mounts the identities file from a Secret. */
function identity(): TSchema {
  const variants = asNode(settingsSchema.properties.identity).anyOf ?? [];
  const kinds = variants.map((variant) => kindOf(variant) ?? '');
  const byKind = variants.flatMap((variant) =>
    kindOf(variant) === 'static' ? [] : [[kindOf(variant), passedOn(variant, ['kind', 'file'])]],
  );
  return closed({
    kind: Type.Union(kinds.map((kind) => Type.Literal(kind))),
    static: closed({ existingSecret: objectName, key: dataKey, ...identitiesSchema.properties }),
    ...(Object.fromEntries(byKind) as TProperties),
    existingSecret: closed({
      name: objectName,
      clientSecretKey: Type.String(),
      directoryTokenKey: Type.String(),
    }),
  });
}

const { openapi: _, ...pricing } = settingsSchema.properties.operations.properties;

const operations = closed({
  ...pricing,
  unlisted: Type.Union([Type.Null(), pricing.unlisted]),
  existingConfigMap: objectName,
  key: dataKey,
  openapi: Type.Union([Type.Null(), Type.String(), Type.Object({})]),
});

/**
 * A section whose entries may also name the further limits of the values. Not by `patternProperties`, which would apply to `until` and
 * `plan` as well. `periodStartsOn` is no name of a row.
 */
function withFurtherLimits(section: TSchema): TSchema {
  const [[key, entry] = ['', {}]] = Object.entries(asNode(section).patternProperties ?? {});
  const names = { anyOf: [{ pattern: ROW_NAME }, { enum: Object.keys(asNode(entry).properties ?? {}) }] };
  const further = { propertyNames: names, additionalProperties: anyLimit };
  return { ...section, patternProperties: { [key]: { ...entry, ...further } } } as TSchema;
}

const { accounts, organizations, addresses, principals, plans, ...limitsOfAll } = limitsSchema.properties;

const limits = closed({
  ...limitsOfAll,
  plans: withFurtherLimits(plans),
  accounts: withFurtherLimits(accounts),
  organizations: withFurtherLimits(organizations),
  addresses: withFurtherLimits(addresses),
  principals: withFurtherLimits(principals),
  existingConfigMap: objectName,
  key: dataKey,
  overrideConfigMaps: Type.Array(Type.String({ ...objectName, minLength: 1 }), { uniqueItems: true }),
});

const { token } = settingsSchema.properties.admin.properties;

const admin = closed({
  token: orEmpty(token),
  existingSecret: closed({ name: objectName, key: dataKey }),
});

const tls = closed({
  enabled: Type.Boolean(),
  existingSecret: objectName,
  certKey: dataKey,
  keyKey: dataKey,
  admin: Type.Boolean(),
  decisions: Type.Boolean(),
  clientCa: closed({ existingSecret: objectName, key: dataKey }),
  certManager: closed({
    enabled: Type.Boolean(),
    issuerRef: Type.Object({}),
    dnsNames: Type.Array(Type.String({ minLength: 1 })),
    spec: Type.Object({}),
  }),
});

const decisions = closed({
  enabled: Type.Boolean(),
  only: Type.Boolean(),
  port: Type.Integer({ minimum: 1, maximum: 65535 }),
  servicePort: Type.Integer({ minimum: 1, maximum: 65535 }),
  trusted: settingsSchema.properties.decisions.properties.trusted,
  deniedStatus: settingsSchema.properties.decisions.properties.deniedStatus,
  extAuthzPrefix: settingsSchema.properties.decisions.properties.extAuthzPrefix,
  annotations: Type.Record(Type.String(), Type.String()),
  envoy: closed({
    enabled: Type.Boolean(),
    port: Type.Integer({ minimum: 1, maximum: 65535 }),
    headers: settingsSchema.properties.decisions.properties.envoy.properties.headers,
    rules: Type.Record(Type.String(), Type.Union([Type.String(), Type.Object({})])),
    existingConfigMap: objectName,
  }),
});

/** The schema of the chart's values. Settings of the gateway use the gateway's own schemas. */
export const chartValuesSchema = closed({
  ...deployment,
  baseUrl: settingsSchema.properties.baseUrl,
  upstream: settingsSchema.properties.upstream,
  trustedProxies: settingsSchema.properties.listen.properties.trustedProxies,
  server: passedOn(asNode(settingsSchema.properties.listen), ['host', 'port', 'trustedProxies', 'tls']),
  log: settingsSchema.properties.log,
  admin,
  tls,
  decisions,
  redis,
  identity: identity(),
  operations,
  limits,
});
