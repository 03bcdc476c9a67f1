import { Type } from 'typebox';
import { asking, providerUrl, seconds } from './provider.ts';

const fromClaims = Type.Object(
  { kind: Type.Literal('claims', { description: 'What each token says of its own Accounts.' }) },
  { additionalProperties: false },
);

const fromFile = Type.Object(
  {
    kind: Type.Literal('file', { description: 'The `accounts` of an identities file.' }),
    file: Type.String({
      description: 'Identities file; reloaded while running.',
      default: 'identities.yaml',
      minLength: 1,
      file: true,
      expects: 'the path of a file',
    }),
  },
  { additionalProperties: false },
);

const fromHttp = Type.Object(
  {
    kind: Type.Literal('http', { description: 'An endpoint that answers for one Account.' }),
    url: providerUrl('Where `{account}` stands for the id; answers `{"organization": "…"}`, or 404.'),
    token: Type.Optional(
      Type.String({
        description: 'Bearer token to send; better set by its variable.',
        minLength: 1,
        secret: true,
      }),
    ),
    cacheSeconds: seconds('For how long an answer is believed.', 60),
    maxCachedAccounts: Type.Integer({
      description: 'Most Accounts remembered.',
      default: 50_000,
      minimum: 1,
      maximum: 10_000_000,
    }),
    ...asking,
  },
  { additionalProperties: false },
);

/** What is known of Accounts: which exist, and whose they are. */
export const directorySchema = Type.Union([fromClaims, fromFile, fromHttp], {
  description: 'Where Accounts and their Organizations are looked up.',
  default: { kind: 'claims' },
});
