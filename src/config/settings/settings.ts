import { type Static, Type } from 'typebox';
import { adminSchema } from './admin.ts';
import { corsSchema } from './cors.ts';
import { credentialsSchema } from './credentials.ts';
import { decisionsSchema } from './decisions.ts';
import { identitySchema } from './identity/identity.ts';
import { kubernetesSchema } from './kubernetes.ts';
import { listenSchema } from './listen.ts';
import { operationsSchema } from './operations.ts';
import { filePath, httpUrl, section } from './section.ts';
import { shutdownSchema } from './shutdown.ts';
import { storeSchema } from './store.ts';
import { upstreamSchema } from './upstream.ts';

/** weir.yaml: the process settings. A change requires a restart. */
export const settingsSchema = Type.Object(
  {
    baseUrl: httpUrl('Prefix of the `type` URI in problem bodies.', 'http://localhost:8080'),
    listen: listenSchema,
    admin: adminSchema,
    decisions: decisionsSchema,
    cors: corsSchema,
    upstream: upstreamSchema,
    shutdown: shutdownSchema,
    store: storeSchema,
    identity: identitySchema,
    credentials: credentialsSchema,
    operations: operationsSchema,
    limits: section('The points per window of each bucket.', {
      file: filePath('Limits file. Reloaded when it changes.', 'limits.yaml'),
      overrides: Type.Array(Type.String({ minLength: 1, file: true, expects: 'a path' }), {
        description:
          'Additional files with `accounts`, `organizations` and `addresses`, or folders with such files. Reloaded when they change.',
        default: [],
      }),
    }),
    kubernetes: kubernetesSchema,
    log: section('Logging to standard output, one JSON object per line.', {
      level: Type.Union(
        (['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const).map((level) =>
          Type.Literal(level),
        ),
        { description: 'Minimum severity to log.', default: 'info' },
      ),
      access: Type.Boolean({ description: 'Log one line per request.', default: true }),
    }),
  },
  { additionalProperties: false },
);

type Immutable<T> = T extends object ? { readonly [K in keyof T]: Immutable<T[K]> } : T;

/** weir.yaml with its defaults filled in and its file paths absolute. */
export type Settings = Immutable<Static<typeof settingsSchema>>;
