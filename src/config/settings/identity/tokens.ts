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
  variant,
  whole,
} from '../section.ts';
import { cachedItems, directorySchema, providerSettings, providerUrl } from './provider.ts';

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

export const jwtSchema = variant('jwt', 'Signed tokens (JWT), verified by the gateway.', {
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
    'Minimum time between two fetches of the keys for tokens that are signed with an unknown key.',
    10,
    [1, 3600],
  ),
  cacheSeconds: seconds('How long a verified token is cached. Never longer than until it expires.', 300, {
    formerly: 'verifiedSeconds',
  }),
  timeoutMs: providerSettings.timeoutMs,
  ...issued,
});

export const introspectionSchema = variant(
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
