import { Type } from 'typebox';

/** The URL of a service that receives tokens or provides keys: HTTPS, or HTTP to this machine only. */
export const providerUrl = (description: string) =>
  Type.String({
    description,
    pattern: '^(https://[^\\s/?#@]+|http://(localhost|127(\\.\\d{1,3}){3}|\\[::1\\])(:\\d+)?)([/?#]\\S*)?$',
    expects: 'an https:// URL (http:// for loopback addresses only)',
    url: true,
  });

export const seconds = (description: string, fallback: number, formerly?: string) =>
  Type.Integer({
    description,
    default: fallback,
    minimum: 0,
    maximum: 86_400,
    ...(formerly && { formerly }),
  });

/** Timeout and caching for services that can be slow or down. */
export const providerSettings = {
  timeoutMs: Type.Integer({
    description: 'Timeout of a request to the provider.',
    default: 2000,
    minimum: 1,
    maximum: 60_000,
  }),
  negativeCacheSeconds: seconds('How long a refusal is cached.', 10),
  staleIfErrorSeconds: seconds(
    'How long after `cacheSeconds` a cached answer is still used while the provider is down. A token is never used after it expires.',
    600,
    'outageSeconds',
  ),
};
