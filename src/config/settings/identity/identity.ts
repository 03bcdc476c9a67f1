import { Type } from 'typebox';
import { filePath, text, timeout, variant } from '../section.ts';
import { introspectionSchema, jwtSchema } from './tokens.ts';

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
    prefix: text('Prefix of API keys. A token without it is looked up only in the file.', { default: 'wk_' }),
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
