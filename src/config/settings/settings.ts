import { type Static, Type } from 'typebox';
import { adminSchema } from './admin.ts';
import { corsSchema } from './cors.ts';
import { credentialsSchema } from './credentials.ts';
import { decisionsSchema } from './decisions.ts';
import { identitySchema } from './identity/identity.ts';
import { kubernetesSchema } from './kubernetes.ts';
import { listenSchema } from './listen.ts';
import { notificationsSchema } from './notifications.ts';
import { operationsSchema } from './operations.ts';
import { closed, filePath, flag, httpUrl, list, literals, section, whole } from './section.ts';
import { storeSchema } from './store.ts';
import { upstreamSchema } from './upstream.ts';
import { usageSchema } from './usage.ts';

const shutdownSeconds = (description: string, fallback: number) => whole(description, fallback, [0, 3600]);

/** weir.yaml: the process settings. A change requires a restart. */
export const settingsSchema = closed({
  baseUrl: httpUrl('Prefix of the `type` URI in problem bodies.', { default: 'http://localhost:8080' }),
  listen: listenSchema,
  admin: adminSchema,
  decisions: decisionsSchema,
  cors: corsSchema,
  upstream: upstreamSchema,
  shutdown: section('Shutdown after SIGTERM.', {
    drainDelaySeconds: shutdownSeconds(
      'How long new requests are still accepted, with `Connection: close`, while `/readyz` answers 503.',
      5,
    ),
    graceSeconds: shutdownSeconds('How long requests in progress may then take to finish.', 30),
  }),
  store: storeSchema,
  identity: identitySchema,
  credentials: credentialsSchema,
  operations: operationsSchema,
  limits: section('The points per window of each bucket.', {
    file: filePath('Limits file. Reloaded when it changes.', { default: 'limits.yaml' }),
    overrides: list(
      'Additional files with `accounts`, `organizations`, `addresses` and `principals`, or folders with such files. Reloaded when they change.',
      Type.String({ minLength: 1, file: true, expects: 'a path' }),
    ),
  }),
  usage: usageSchema,
  notifications: notificationsSchema,
  kubernetes: kubernetesSchema,
  log: section('Logging to standard output, one JSON object per line.', {
    level: literals(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      description: 'Minimum severity to log.',
      default: 'info',
    }),
    access: flag('Log one line per request.', true),
  }),
});

export type Immutable<T> = T extends object ? { readonly [K in keyof T]: Immutable<T[K]> } : T;

/** weir.yaml with its defaults filled in and its file paths absolute. */
export type Settings = Immutable<Static<typeof settingsSchema>>;
