import { Type } from 'typebox';
import { tlsFiles } from './section.ts';

const shared = {
  keyPrefix: Type.String({
    description: 'Prefix of every key. Gateways with the same prefix share their counts.',
    default: 'weir',
    pattern: '^[A-Za-z0-9._-]+$',
    expects: 'letters, digits, ".", "_" or "-"',
  }),
  deadlineMs: Type.Integer({
    description: 'Timeout of a charge. The request is then handled as `onStoreFailure` specifies.',
    default: 25,
    minimum: 1,
    maximum: 60_000,
  }),
  onStoreFailure: Type.Union([Type.Literal('serve'), Type.Literal('reject')], {
    description:
      'What to do with a request that cannot be charged: `serve` it in degraded mode, or `reject` it with a 503.',
    default: 'serve',
  }),
};

const remote = {
  ...shared,
  username: Type.Optional(
    Type.String({ description: 'ACL user. Prefer setting it by its variable.', minLength: 1 }),
  ),
  password: Type.Optional(
    Type.String({ description: 'Password. Prefer setting it by its variable.', minLength: 1, secret: true }),
  ),
  tls: Type.Optional(
    Type.Object(tlsFiles, {
      description:
        'Use TLS. `{}` trusts the certificate authorities of the system, as does a `rediss://` URL.',
      additionalProperties: false,
    }),
  ),
};

const redisUrl = {
  // The URL can contain a password.
  secret: true,
  url: true,
  pattern: '^rediss?://[^\\s/]+(/\\d*)?$',
  expects: 'a redis:// or rediss:// URL',
};

const addresses = (description: string) =>
  Type.Array(Type.String(redisUrl), {
    description,
    minItems: 1,
    expects: 'a list of one or more redis:// URLs',
  });

/** Where points are counted. With any kind but `memory`, the gateway's replicas share their counts. */
export const storeSchema = Type.Union(
  [
    Type.Object(
      { kind: Type.Literal('memory', { description: 'In this process only.' }), ...shared },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        kind: Type.Literal('redis', { description: 'A single Redis server.' }),
        url: Type.String({
          description: 'URL of the server. Setting the variable also sets `kind`.',
          env: 'WEIR_REDIS_URL',
          envSelects: true,
          ...redisUrl,
        }),
        ...remote,
      },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        kind: Type.Literal('cluster', { description: 'A Redis Cluster.' }),
        nodes: addresses('Some of the nodes. The others are discovered.'),
        ...remote,
      },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        kind: Type.Literal('sentinel', { description: 'A Redis primary monitored by Sentinel.' }),
        sentinels: addresses('URLs of the Sentinels.'),
        name: Type.String({ description: 'Name of the primary in the Sentinels.', minLength: 1 }),
        ...remote,
      },
      { additionalProperties: false },
    ),
  ],
  { description: 'Where points are counted.', default: { kind: 'memory' } },
);
