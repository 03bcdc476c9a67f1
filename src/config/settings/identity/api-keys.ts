import { Type } from 'typebox';

export const apiKeySchema = Type.Object(
  {
    kind: Type.Literal('api-keys', {
      description: 'API keys that an endpoint knows, beside the tokens of a file.',
    }),
    file: Type.String({
      description: 'Identities file with the principals and Accounts; reloaded while running.',
      default: 'identities.yaml',
      minLength: 1,
      file: true,
      expects: 'the path of a file',
    }),
    url: Type.String({
      description:
        'Where `{digest}` stands for the SHA-256 of a key, in hex; answers `{"principal": "…"}`, or 404. A path is one of `upstream.url`.',
      default: '/internal/api-keys/{digest}',
      pattern: '^(/|https?://)[^\\s#@]*$',
      expects: 'an http(s) URL or a path',
    }),
    prefix: Type.String({
      description: 'How keys begin. A token without it is only looked up in the file.',
      default: 'wk_',
      minLength: 1,
    }),
    timeoutMs: Type.Integer({
      description: 'How long the endpoint may take to answer.',
      default: 2000,
      minimum: 1,
      maximum: 60_000,
    }),
  },
  { additionalProperties: false },
);
