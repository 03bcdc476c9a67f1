import { Type } from 'typebox';
import { filePath } from '../section.ts';
import { directorySchema } from './directory.ts';
import { providerSettings, providerUrl, seconds } from './provider.ts';

const claim = (description: string, fallback: string) =>
  Type.String({ description, default: fallback, minLength: 1 });

/** Settings shared by all kinds of tokens from an external issuer. */
const issued = {
  claims: Type.Object(
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
    },
    { description: 'Names of the claims to read.', default: {}, additionalProperties: false },
  ),
  maxCachedTokens: Type.Integer({
    description: 'Maximum number of cached verified tokens, and of cached refused tokens.',
    default: 50_000,
    minimum: 1,
    maximum: 10_000_000,
  }),
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
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
const SYMMETRIC = ['HS256', 'HS384', 'HS512'] as const;

const algorithm = Type.Union(
  [...ASYMMETRIC, ...SYMMETRIC].map((name) => Type.Literal(name)),
  { expects: 'a signature algorithm such as RS256' },
);

export const jwtSchema = Type.Object(
  {
    kind: Type.Literal('jwt', { description: 'Signed tokens (JWT), verified by the gateway.' }),
    issuer: Type.String({ description: 'Accepted issuer (`iss`).', minLength: 1 }),
    audience,
    jwksUrl: Type.Optional(providerUrl("URL of the issuer's keys (JWKS). Set either this or `keyFile`.")),
    keyFile: Type.Optional(
      filePath(
        'File with public keys in PEM, JWK or JWKS format. With HS256, HS384 or HS512, the secret as a JWK.',
      ),
    ),
    algorithms: Type.Array(algorithm, {
      description: 'Accepted signature algorithms.',
      default: [...ASYMMETRIC],
      minItems: 1,
    }),
    clockToleranceSeconds: Type.Integer({
      description: "Tolerated difference between the issuer's clock and this one.",
      default: 5,
      minimum: 0,
      maximum: 300,
    }),
    tokenType: Type.Optional(
      Type.String({ description: 'Required `typ` of the token, such as `at+jwt`.', minLength: 1 }),
    ),
    jwksCooldownSeconds: Type.Integer({
      description:
        'Minimum time between two fetches of the keys for tokens that are signed with an unknown key.',
      default: 10,
      minimum: 1,
      maximum: 3600,
    }),
    cacheSeconds: seconds(
      'How long a verified token is cached. Never longer than until it expires.',
      300,
      'verifiedSeconds',
    ),
    timeoutMs: providerSettings.timeoutMs,
    ...issued,
  },
  { additionalProperties: false },
);

export const introspectionSchema = Type.Object(
  {
    kind: Type.Literal('introspection', {
      description: 'Tokens that the gateway sends to their issuer for introspection (RFC 7662).',
    }),
    url: providerUrl('Introspection endpoint.'),
    clientId: Type.String({ description: 'Client id of the gateway at the issuer.', minLength: 1 }),
    clientSecret: Type.String({
      description: 'Client secret. Prefer setting it by its variable.',
      minLength: 1,
      secret: true,
    }),
    clientAuthentication: Type.Union([Type.Literal('basic'), Type.Literal('post')], {
      description: 'How the secret is sent: `client_secret_basic` or `client_secret_post`.',
      default: 'basic',
    }),
    issuer: Type.Optional(
      Type.String({
        description: 'Required `iss` of the answer, if it contains one.',
        minLength: 1,
      }),
    ),
    audience: Type.Optional(audience),
    cacheSeconds: seconds('How long an answer is cached. Never longer than until the token expires.', 30),
    ...providerSettings,
    ...issued,
  },
  { additionalProperties: false },
);

export function isSymmetric(algorithmName: string): boolean {
  return SYMMETRIC.some((name) => name === algorithmName);
}
