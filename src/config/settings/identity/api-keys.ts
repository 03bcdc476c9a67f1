import { Type } from 'typebox';
import { filePath } from '../section.ts';

export const apiKeySchema = Type.Object(
  {
    kind: Type.Literal('api-keys', {
      description: 'API keys, looked up at an endpoint, in addition to the tokens of a file.',
    }),
    file: filePath(
      'Identities file with the principals and Accounts. Reloaded when it changes.',
      'identities.yaml',
    ),
    url: Type.String({
      description:
        'URL that answers `{"principal": "…"}` or 404 for a key. `{digest}` is replaced by the hex SHA-256 of the key. A path is relative to `upstream.url`.',
      default: '/internal/api-keys/{digest}',
      pattern: '^(/|https?://)[^\\s#@]*$',
      expects: 'an http(s) URL or a path',
    }),
    prefix: Type.String({
      description: 'Prefix of API keys. A token without it is looked up only in the file.',
      default: 'wk_',
      minLength: 1,
    }),
    timeoutMs: Type.Integer({
      description: 'Timeout of a request to the endpoint.',
      default: 2000,
      minimum: 1,
      maximum: 60_000,
    }),
  },
  { additionalProperties: false },
);
