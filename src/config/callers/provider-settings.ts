import { Type } from 'typebox';

/** Tokens and keys travel to these: plain HTTP only where nobody is in between. */
export const providerUrl = (description: string) =>
  Type.String({
    description,
    pattern: '^(https://[^\\s/?#@]+|http://(localhost|127(\\.\\d{1,3}){3}|\\[::1\\])(:\\d+)?)([/?#]\\S*)?$',
    expects: 'an https:// URL (http:// on the loopback only)',
    url: true,
  });

export const seconds = (description: string, fallback: number) =>
  Type.Integer({ description, default: fallback, minimum: 0, maximum: 86_400 });

/** How to ask somebody who may be slow or down. */
export const asking = {
  timeoutMs: Type.Integer({
    description: 'How long the provider may take to answer.',
    default: 2000,
    minimum: 1,
    maximum: 60_000,
  }),
  negativeCacheSeconds: seconds('For how long what was refused is not asked for again.', 10),
  outageSeconds: seconds(
    'How much longer what was found goes on while the provider is down; a token never past its end.',
    600,
  ),
};
