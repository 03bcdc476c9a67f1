import { Type } from 'typebox';

const shared = {
  keyPrefix: Type.String({
    description: 'First word of every key; gateways that share it share their counts.',
    default: 'weir',
    pattern: '^[A-Za-z0-9._-]+$',
    expects: 'letters, digits, ".", "_" or "-"',
  }),
  deadlineMs: Type.Integer({
    description: 'How long a decision may take before the request goes on uncounted.',
    default: 25,
    minimum: 1,
    maximum: 60_000,
  }),
  onStoreFailure: Type.Union([Type.Literal('serve'), Type.Literal('reject')], {
    description: 'A request that could not be counted: `serve` it as degraded, or `reject` it with 503.',
    default: 'serve',
  }),
};

const file = (description: string) =>
  Type.Optional(Type.String({ description, minLength: 1, file: true, expects: 'the path of a file' }));

const remote = {
  ...shared,
  username: Type.Optional(
    Type.String({ description: 'ACL user; better set by its variable.', minLength: 1 }),
  ),
  password: Type.Optional(
    Type.String({ description: 'Better set by its variable than in a file.', minLength: 1, secret: true }),
  ),
  tls: Type.Optional(
    Type.Object(
      {
        caFile: file('Certificate authority to trust in place of the system ones.'),
        certFile: file('Client certificate.'),
        keyFile: file("Client certificate's key."),
        serverName: Type.Optional(
          Type.String({ description: 'Name that the certificate must bear.', minLength: 1 }),
        ),
      },
      {
        description: 'Speak TLS; `{}` trusts the system authorities. A `rediss://` URL does so as well.',
        additionalProperties: false,
      },
    ),
  ),
};

const redisUrl = {
  // It may hold a password.
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

/** Where points are counted. The gateway's replicas share their counts through anything but `memory`. */
export const storeSchema = Type.Union(
  [
    Type.Object(
      { kind: Type.Literal('memory', { description: 'In this process alone.' }), ...shared },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        kind: Type.Literal('redis', { description: 'One Redis.' }),
        url: Type.String({
          description: 'Address; the variable chooses this kind by itself.',
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
        nodes: addresses('Some of its nodes; the others are found through them.'),
        ...remote,
      },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        kind: Type.Literal('sentinel', { description: 'A primary that Sentinels watch.' }),
        sentinels: addresses('The Sentinels.'),
        name: Type.String({ description: 'What the Sentinels call the primary.', minLength: 1 }),
        ...remote,
      },
      { additionalProperties: false },
    ),
  ],
  { description: 'Where points are counted.', default: { kind: 'memory' } },
);
