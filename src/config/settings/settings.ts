import { type Static, Type } from 'typebox';
import { identitySchema } from './identity/identity.ts';
import { kubernetesSchema } from './kubernetes.ts';
import { listenSchema } from './listen.ts';
import { operationsSchema } from './operations.ts';
import { host, httpUrl, port, section } from './section.ts';
import { shutdownSchema } from './shutdown.ts';
import { storeSchema } from './store.ts';
import { upstreamSchema } from './upstream.ts';

/** weir.yaml: what a process needs to start. A change takes a restart. */
export const settingsSchema = Type.Object(
  {
    baseUrl: httpUrl("Prefix of a problem's `type`.", 'http://localhost:8080'),
    listen: listenSchema,
    admin: section('Where `/metrics`, `/livez` and `/readyz` are served.', {
      host: host('Address to listen on.', '127.0.0.1', 'WEIR_ADMIN_HOST'),
      port: port('Port to listen on; 0 takes a free one.', 9090, 'WEIR_ADMIN_PORT'),
    }),
    upstream: upstreamSchema,
    shutdown: shutdownSchema,
    store: storeSchema,
    identity: identitySchema,
    operations: operationsSchema,
    limits: section('How many points each bucket holds.', {
      file: Type.String({
        description: 'Limits file; reloaded while running.',
        default: 'limits.yaml',
        minLength: 1,
        file: true,
        expects: 'the path of a file',
      }),
      overrides: Type.Array(Type.String({ minLength: 1, file: true, expects: 'a path' }), {
        description:
          'Further files of `accounts` and `organizations`, or folders of such files; reloaded while running.',
        default: [],
      }),
    }),
    kubernetes: kubernetesSchema,
    log: section('What is written to standard output, one JSON object a line.', {
      level: Type.Union(
        (['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const).map((level) =>
          Type.Literal(level),
        ),
        { description: 'Least severity that is written.', default: 'info' },
      ),
      access: Type.Boolean({ description: 'Write one line per request.', default: true }),
    }),
  },
  { additionalProperties: false },
);

type Immutable<T> = T extends object ? { readonly [K in keyof T]: Immutable<T[K]> } : T;

/** weir.yaml with its defaults filled in and its file paths absolute. */
export type Settings = Immutable<Static<typeof settingsSchema>>;
