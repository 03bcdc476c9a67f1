import { type Static, type TProperties, Type } from 'typebox';
import { identitySchema } from './identity-settings.ts';
import { operationsSchema } from './operation-settings.ts';
import { storeSchema } from './store-settings.ts';

/**
 * One section of weir.yaml. To add a section: write it here as the others are, give every setting a default and a
 * description, and run `npm run docs`. Its environment variables follow from its words (`WEIR_<SECTION>_<SETTING>`);
 * write `env` only where another name reads better.
 */
function section<T extends TProperties>(description: string, properties: T) {
  return Type.Object(properties, { description, default: {}, additionalProperties: false });
}

const host = (description: string, fallback: string, env: string) =>
  Type.String({ description, default: fallback, minLength: 1, env, expects: 'a host name or address' });

const port = (description: string, fallback: number, env: string) =>
  Type.Integer({ description, default: fallback, minimum: 0, maximum: 65535, env });

const httpUrl = (description: string, fallback: string) =>
  Type.String({
    description,
    default: fallback,
    pattern: '^https?://[^\\s/?#]+([/?#]\\S*)?$',
    expects: 'an http:// or https:// URL',
  });

/** weir.yaml: what a process needs to start. A change takes a restart. */
export const settingsSchema = Type.Object(
  {
    baseUrl: httpUrl("Prefix of a problem's `type`.", 'http://localhost:8080'),
    listen: section('Where clients connect.', {
      host: host('Address to listen on.', '0.0.0.0', 'WEIR_HOST'),
      port: port('Port to listen on; 0 takes a free one.', 8080, 'WEIR_PORT'),
    }),
    admin: section('Where `/metrics`, `/livez` and `/readyz` are served.', {
      host: host('Address to listen on.', '127.0.0.1', 'WEIR_ADMIN_HOST'),
      port: port('Port to listen on; 0 takes a free one.', 9090, 'WEIR_ADMIN_PORT'),
    }),
    upstream: section('The service behind the gateway.', {
      url: httpUrl('Where requests are forwarded to.', 'http://127.0.0.1:3000'),
    }),
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
