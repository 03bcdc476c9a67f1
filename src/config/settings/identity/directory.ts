import { Type } from 'typebox';
import { filePath } from '../section.ts';
import { providerSettings, providerUrl, seconds } from './provider.ts';

const fromClaims = Type.Object(
  { kind: Type.Literal('claims', { description: 'The claims of each token.' }) },
  { additionalProperties: false },
);

const fromFile = Type.Object(
  {
    kind: Type.Literal('file', { description: 'The `accounts` of an identities file.' }),
    file: filePath('Identities file. Reloaded when it changes.', 'identities.yaml'),
  },
  { additionalProperties: false },
);

const fromHttp = Type.Object(
  {
    kind: Type.Literal('http', { description: 'An endpoint that is queried for each Account.' }),
    url: providerUrl(
      'URL that answers `{"organization": "…"}` or 404 for an Account. `{account}` is replaced by its id.',
    ),
    token: Type.Optional(
      Type.String({
        description: 'Bearer token to send. Prefer setting it by its variable.',
        minLength: 1,
        secret: true,
      }),
    ),
    cacheSeconds: seconds('How long an answer is cached.', 60),
    maxCachedAccounts: Type.Integer({
      description: 'Maximum number of cached Accounts.',
      default: 50_000,
      minimum: 1,
      maximum: 10_000_000,
    }),
    ...providerSettings,
  },
  { additionalProperties: false },
);

/** Which Accounts exist, and the Organization that each belongs to. */
export const directorySchema = Type.Union([fromClaims, fromFile, fromHttp], {
  description: 'Source of the Accounts and their Organizations.',
  default: { kind: 'claims' },
});
