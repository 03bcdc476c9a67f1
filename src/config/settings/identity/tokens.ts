import { Type } from 'typebox';
import { directorySchema } from './directory.ts';
import { asking, providerUrl, seconds } from './provider.ts';

const claim = (description: string, fallback: string) =>
  Type.String({ description, default: fallback, minLength: 1 });

/** What tokens that somebody else issues have in common, whoever vouches for them. */
const issued = {
  claims: Type.Object(
    {
      principal: claim('Id of the Person or ServiceAccount.', 'sub'),
      type: claim('`Person` or `ServiceAccount`; a token without it is a ServiceAccount.', 'type'),
      account: claim('Its own Account.', 'account'),
      organization: claim(
        'Organization of that Account; without one, the Organization that owns it.',
        'organization',
      ),
      actsFor: claim(
        'Further Accounts: ids, or `{account, organization}` where it is another Organization.',
        'actsFor',
      ),
    },
    { description: 'Names of the claims to read.', default: {}, additionalProperties: false },
  ),
  maxCachedTokens: Type.Integer({
    description: 'Most verified tokens remembered, and most refused ones.',
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
  { description: 'What tokens call this API; with a list, any of it.', expects: 'a name or a list of names' },
);

/** By which a signature needs no secret of the gateway's. */
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
    kind: Type.Literal('jwt', { description: 'Signed tokens, checked here.' }),
    issuer: Type.String({ description: 'Who issues the tokens: their `iss`.', minLength: 1 }),
    audience,
    jwksUrl: Type.Optional(providerUrl("The issuer's keys (JWKS); either this or `keyFile`.")),
    keyFile: Type.Optional(
      Type.String({
        description: 'Public keys in a file: PEM, JWK or JWKS; with HS256 and its like the secret, as a JWK.',
        minLength: 1,
        file: true,
        expects: 'the path of a file',
      }),
    ),
    algorithms: Type.Array(algorithm, {
      description: 'Signature algorithms that are accepted.',
      default: [...ASYMMETRIC],
      minItems: 1,
    }),
    clockToleranceSeconds: Type.Integer({
      description: "By how much the issuer's clock may differ.",
      default: 5,
      minimum: 0,
      maximum: 300,
    }),
    tokenType: Type.Optional(
      Type.String({ description: 'Only tokens whose `typ` is this, such as `at+jwt`.', minLength: 1 }),
    ),
    jwksCooldownSeconds: Type.Integer({
      description: 'Least time between two fetches of the keys for tokens signed with an unknown one.',
      default: 10,
      minimum: 1,
      maximum: 3600,
    }),
    cacheSeconds: seconds(
      'How long a verified token is not verified again; never past its end.',
      300,
      'verifiedSeconds',
    ),
    timeoutMs: asking.timeoutMs,
    ...issued,
  },
  { additionalProperties: false },
);

export const introspectionSchema = Type.Object(
  {
    kind: Type.Literal('introspection', {
      description: 'Tokens that their issuer is asked about (RFC 7662).',
    }),
    url: providerUrl('Introspection endpoint.'),
    clientId: Type.String({ description: "The gateway's own name at the issuer.", minLength: 1 }),
    clientSecret: Type.String({
      description: 'Its secret; better set by its variable.',
      minLength: 1,
      secret: true,
    }),
    clientAuthentication: Type.Union([Type.Literal('basic'), Type.Literal('post')], {
      description: 'How the secret is sent: `client_secret_basic` or `client_secret_post`.',
      default: 'basic',
    }),
    issuer: Type.Optional(
      Type.String({
        description: 'Only tokens whose `iss`, where the answer has one, is this.',
        minLength: 1,
      }),
    ),
    audience: Type.Optional(audience),
    cacheSeconds: seconds('How long an answer is cached; never past the end of the token.', 30),
    ...asking,
    ...issued,
  },
  { additionalProperties: false },
);

export function isSymmetric(algorithmName: string): boolean {
  return SYMMETRIC.some((name) => name === algorithmName);
}
