import { Type } from 'typebox';
import { filePath } from '../section.ts';
import { apiKeySchema } from './api-keys.ts';
import { introspectionSchema, jwtSchema } from './tokens.ts';

/** How callers are authenticated. Each method is a variant of this union with its own `kind`. */
export const identitySchema = Type.Union(
  [
    Type.Object(
      {
        kind: Type.Literal('static', { description: 'Tokens and principals from a file.' }),
        file: filePath('Identities file. Reloaded when it changes.', 'identities.yaml'),
      },
      { additionalProperties: false },
    ),
    jwtSchema,
    introspectionSchema,
    apiKeySchema,
  ],
  { description: 'How callers are authenticated.', default: { kind: 'static' } },
);
