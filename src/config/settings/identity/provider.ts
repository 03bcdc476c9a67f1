import { Type } from 'typebox';
import { filePath, seconds, secret, timeout, variant, whole } from '../section.ts';

/** The URL of a service that receives tokens or provides keys: HTTPS, or HTTP to this machine only. */
export const providerUrl = (description: string) =>
  Type.String({
    description,
    pattern: '^(https://[^\\s/?#@]+|http://(localhost|127(\\.\\d{1,3}){3}|\\[::1\\])(:\\d+)?)([/?#]\\S*)?$',
    expects: 'an https:// URL (http:// for loopback addresses only)',
    url: true,
  });

/** How many answers are cached. */
export const cachedItems = (description: string) => whole(description, 50_000, [1, 10_000_000]);

/** Timeout and caching for services that can be slow or down. */
export const providerSettings = {
  timeoutMs: timeout('Timeout of a request to the provider.', 2000),
  negativeCacheSeconds: seconds('How long a refusal is cached.', 10),
  staleIfErrorSeconds: seconds(
    'How long after `cacheSeconds` a cached answer is still used while the provider is down. A token is never used after it expires.',
    600,
    { formerly: 'outageSeconds' },
  ),
};

/** Which Accounts exist, and the Organization that each belongs to. */
export const directorySchema = Type.Union(
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
