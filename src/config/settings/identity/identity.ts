import { Type } from 'typebox';
import { apiKeySchema } from './api-keys.ts';
import { introspectionSchema, jwtSchema } from './tokens.ts';

/** Who callers are. A further way to tell is one more variant of this union, under a `kind` of its own. */
export const identitySchema = Type.Union(
  [
    Type.Object(
      {
        kind: Type.Literal('static', { description: 'Tokens and principals from a file.' }),
        file: Type.String({
          description: 'Identities file; reloaded while running.',
          default: 'identities.yaml',
          minLength: 1,
          file: true,
          expects: 'the path of a file',
        }),
      },
      { additionalProperties: false },
    ),
    jwtSchema,
    introspectionSchema,
    apiKeySchema,
  ],
  { description: 'Who callers are.', default: { kind: 'static' } },
);
