import { Type } from 'typebox';
import { maskUrl } from '../reader/mask.ts';
import { choice, closed, secret, text, timeout, tlsFiles, variant, whole } from './section.ts';
import type { Settings } from './settings.ts';

const shared = {
  keyPrefix: Type.String({
    description: 'Prefix of every key. Gateways with the same prefix share their counts.',
    default: 'weir',
    pattern: '^[A-Za-z0-9._-]+$',
    expects: 'letters, digits, ".", "_" or "-"',
  }),
  deadlineMs: timeout('Timeout of a charge. The request is then handled as `onStoreFailure` specifies.', 25),
  onStoreFailure: choice(
    'What to do with a request that cannot be charged: `serve` it in degraded mode, `reject` it with a 503, or `share` the limits: each ' +
      'replica counts alone and admits its part of every limit. See docs/operating/store-outage.md.',
    ['serve', 'reject', 'share'],
  ),
  expectedReplicas: whole(
    'With `share`: the number of replicas to divide limits by until this one has seen the others. Set it to the usual number: with 1, ' +
      'each replica that starts while the store is away admits the whole of every limit.',
    1,
    [1, 1_000],
  ),
};

const remote = {
  ...shared,
  username: Type.Optional(text('ACL user. Prefer setting it by its variable.')),
  password: Type.Optional(secret('Password.')),
  tls: Type.Optional(
    closed(tlsFiles, {
      description:
        'Use TLS. `{}` trusts the certificate authorities of the system, as does a `rediss://` URL.',
    }),
  ),
};

const redisUrl = {
  // The URL can contain a password.
  secret: true,
  url: true,
  pattern: '^rediss?://[^\\s/?#]+(/\\d*)?$',
  expects: 'a redis:// or rediss:// URL without a query',
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
    variant('memory', 'In this process only.', shared),
    variant('redis', 'A single Redis server.', {
      url: Type.String({
        description: 'URL of the server. Setting the variable also sets `kind`.',
        env: 'WEIR_REDIS_URL',
        envSelects: true,
        ...redisUrl,
      }),
      ...remote,
    }),
    variant('cluster', 'A Redis Cluster.', {
      nodes: addresses('Some of the nodes. The others are discovered.'),
      ...remote,
    }),
    variant('sentinel', 'A Redis primary monitored by Sentinel.', {
      sentinels: addresses('URLs of the Sentinels.'),
      name: text('Name of the primary in the Sentinels.'),
      ...remote,
    }),
  ],
  { description: 'Where points are counted.', default: { kind: 'memory' } },
);

/** Where the store is, in messages: without passwords, whatever characters they have. */
export function addressOf(settings: Settings['store']): string {
  switch (settings.kind) {
    case 'memory':
      return 'memory';
    case 'redis':
      return maskUrl(settings.url);
    case 'cluster':
      return settings.nodes.map((url) => maskUrl(url)).join(' ');
    case 'sentinel':
      return `${settings.name} of ${settings.sentinels.map((url) => maskUrl(url)).join(' ')}`;
  }
}
