import { Type } from 'typebox';
import {
  choice,
  closed,
  filePath,
  list,
  literals,
  seconds,
  secret,
  text,
  timeout,
  variant,
  whole,
} from './section.ts';

/** The URL of a service that receives tokens or provides keys: HTTPS, or HTTP to this machine only. */
const providerUrl = (description: string) =>
  Type.String({
    description,
    pattern: '^(https://[^\\s/?#@]+|http://(localhost|127(\\.\\d{1,3}){3}|\\[::1\\])(:\\d+)?)([/?#]\\S*)?$',
    expects: 'an https:// URL (http:// for loopback addresses only)',
    url: true,
  });

/** How many answers are cached. */
const cachedItems = (description: string) => whole(description, 50_000, [1, 10_000_000]);

/** Timeout and caching for services that can be slow or down. */
const providerSettings = {
  timeoutMs: timeout('Timeout of a request to the provider.', 2000),
  negativeCacheSeconds: seconds('How long a refusal is cached.', 10),
  staleIfErrorSeconds: seconds(
    'How long after `cacheSeconds` a cached answer is still used while the provider is down. A token is never used after it expires.',
    600,
    { formerly: 'outageSeconds' },
  ),
};

/** Which Accounts exist, and the Organization that each belongs to. */
const directorySchema = Type.Union(
  [
    variant('claims', 'The claims of each token.', {}),
    variant('file', 'The `accounts` of an identities file.', {
      file: filePath('Identities file. Reloaded when it changes.', { default: 'identities.yaml' }),
    }),
    variant('http', 'An endpoint that is queried for each Account.', {
      url: providerUrl(
        'URL that answers `{"organization": "…"}` or 404 for an Account. `{account}` is replaced by its id.',
      ),
      token: Type.Optional(secret('Bearer token to send.')),
      cacheSeconds: seconds('How long an answer is cached.', 60),
      maxCachedAccounts: cachedItems('Maximum number of cached Accounts.'),
      ...providerSettings,
    }),
  ],
  { description: 'Source of the Accounts and their Organizations.', default: { kind: 'claims' } },
);

const claim = (description: string, fallback: string) => text(description, { default: fallback });

/** Settings shared by all kinds of tokens from an external issuer. */
const issued = {
  claims: closed(
    {
      principal: claim('Id of the Person or ServiceAccount.', 'sub'),
      type: claim('`Person` or `ServiceAccount`; a token without it is a ServiceAccount.', 'type'),
      account: claim('Account of the principal.', 'account'),
      organization: claim(
        'Organization of that Account. If there is no Account, the Organization that owns the ServiceAccount.',
        'organization',
      ),
      actsFor: claim(
        'Other Accounts that the principal may act for: ids, or `{account, organization}` if the Organization is different.',
        'actsFor',
      ),
      plan: claim(
        'Plan whose limits apply to its Account, unless the limits file assigns another. Without an Account, its limits apply to the Organization.',
        'plan',
      ),
      periodStartsOn: claim(
        'Day from 1 to 31 on which the months of its Account begin, unless the limits file names another.',
        'periodStartsOn',
      ),
    },
    { description: 'Names of the claims to read.', default: {} },
  ),
  maxCachedTokens: cachedItems('Maximum number of cached verified tokens, and of cached refused tokens.'),
  directory: directorySchema,
};

const audience = Type.Union(
  [
    Type.String({ minLength: 1 }),
    Type.Array(Type.String({ minLength: 1, expects: 'a name' }), { minItems: 1 }),
  ],
  {
    description: 'Accepted audience (`aud`). With a list, any of its entries.',
    expects: 'a name or a list of names',
  },
);

/** Algorithms that verify with a public key. */
const ASYMMETRIC = [
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const),
  ...(['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const),
];
const SYMMETRIC = ['HS256', 'HS384', 'HS512'] as const;

const algorithm = literals([...ASYMMETRIC, ...SYMMETRIC], {
  expects: 'a signature algorithm such as RS256',
});

const jwtSchema = variant('jwt', 'Signed tokens (JWT), verified by the gateway.', {
  issuer: text('Accepted issuer (`iss`).'),
  audience,
  jwksUrl: Type.Optional(providerUrl("URL of the issuer's keys (JWKS). Set either this or `keyFile`.")),
  keyFile: Type.Optional(
    filePath(
      'File with public keys in PEM, JWK or JWKS format. With HS256, HS384 or HS512, the secret as a JWK.',
    ),
  ),
  algorithms: list('Accepted signature algorithms.', algorithm, {
    default: ASYMMETRIC,
    minItems: 1,
  }),
  clockToleranceSeconds: whole("Tolerated difference between the issuer's clock and this one.", 5, [0, 300]),
  tokenType: Type.Optional(text('Required `typ` of the token, such as `at+jwt`.')),
  jwksCooldownSeconds: whole(
    'Minimum time between two fetches of the keys for tokens that are signed with an unknown key, or have a wrong signature.',
    10,
    [1, 3600],
  ),
  cacheSeconds: seconds('How long a verified token is cached. Never longer than until it expires.', 300, {
    formerly: 'verifiedSeconds',
  }),
  timeoutMs: providerSettings.timeoutMs,
  ...issued,
});

const introspectionSchema = variant(
  'introspection',
  'Tokens that the gateway sends to their issuer for introspection (RFC 7662).',
  {
    url: providerUrl('Introspection endpoint.'),
    clientId: text('Client id of the gateway at the issuer.'),
    clientSecret: secret('Client secret.'),
    clientAuthentication: choice('How the secret is sent: `client_secret_basic` or `client_secret_post`.', [
      'basic',
      'post',
    ]),
    issuer: Type.Optional(text('Required `iss` of the answer, if it contains one.')),
    audience: Type.Optional(audience),
    cacheSeconds: seconds('How long an answer is cached. Never longer than until the token expires.', 30),
    ...providerSettings,
    ...issued,
  },
);

export function isSymmetric(algorithmName: string): boolean {
  return SYMMETRIC.some((name) => name === algorithmName);
}

const apiKeySchema = variant(
  'api-keys',
  'API keys, looked up at an endpoint, in addition to the tokens of a file.',
  {
    file: filePath('Identities file with the principals and Accounts. Reloaded when it changes.', {
      default: 'identities.yaml',
    }),
    url: Type.String({
      description:
        'URL that answers `{"principal": "…"}` or 404 for a key. `{digest}` is replaced by the hex SHA-256 of the key. A path is relative to `upstream.url`.',
      default: '/internal/api-keys/{digest}',
      pattern: '^(/|https?://)[^\\s#@]*$',
      expects: 'an http(s) URL or a path',
    }),
    prefix: text('Prefix of API keys. A token without it is looked up only in the file.', {
      default: 'wk_',
      // What a key may have: no key would begin with another prefix.
      pattern: '^[A-Za-z0-9\\-._~+/]*$',
      maxLength: 64,
      expects: 'letters, digits or -._~+/, at most 64 characters',
    }),
    timeoutMs: timeout('Timeout of a request to the endpoint.', 2000),
  },
);

/** How callers are authenticated. Each method is a variant of this union with its own `kind`. */
export const identitySchema = Type.Union(
  [
    variant('static', 'Tokens and principals from a file.', {
      file: filePath('Identities file. Reloaded when it changes.', { default: 'identities.yaml' }),
    }),
    jwtSchema,
    introspectionSchema,
    apiKeySchema,
  ],
  { description: 'How callers are authenticated.', default: { kind: 'static' } },
);
