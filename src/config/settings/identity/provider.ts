import { Type } from 'typebox';

/** Tokens and keys travel to these: plain HTTP only where nobody is in between. */
export const providerUrl = (description: string) =>
  Type.String({
    description,
    pattern: '^(https://[^\\s/?#@]+|http://(localhost|127(\\.\\d{1,3}){3}|\\[::1\\])(:\\d+)?)([/?#]\\S*)?$',
    expects: 'an https:// URL (http:// on the loopback only)',
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

/** How to ask somebody who may be slow or down. */
export const asking = {
  timeoutMs: Type.Integer({
    description: 'How long the provider may take to answer.',
    default: 2000,
    minimum: 1,
    maximum: 60_000,
  }),
  negativeCacheSeconds: seconds('How long a refusal is cached.', 10),
  staleIfErrorSeconds: seconds(
    'How much longer a cached answer is used while the provider is down; a token never past its end.',
    600,
    'outageSeconds',
  ),
};
