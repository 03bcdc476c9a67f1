import { type Static, Type } from 'typebox';
import { credentialsSchema } from './credentials.ts';
import { decisionsSchema } from './decisions-settings.ts';
import { identitySchema } from './identity-settings.ts';
import { journalSchema } from './journal-settings.ts';
import { listenSchema } from './listen-settings.ts';
import { notificationsSchema } from './notifications-settings.ts';
import { operationsSchema } from './operations-settings.ts';
import { portToken } from './port-token.ts';
import {
  address,
  choice,
  closed,
  filePath,
  flag,
  httpUrl,
  list,
  literals,
  seconds,
  section,
  serverTls,
  text,
  whole,
} from './section.ts';
import { storeSchema } from './store-settings.ts';
import { upstreamSchema } from './upstream-settings.ts';

/** The port for operators, and the token that protects it. */
const adminSchema = section('The port that serves metrics, health and usage.', {
  ...address('127.0.0.1', 9090, 'WEIR_ADMIN'),
  tls: serverTls({}),
  ...portToken('Bearer token for everything except metrics and health.'),
});

/** Which web pages may read the responses. */
const corsSchema = section('Cross-origin requests of browsers. See docs/proxy.md.', {
  origins: list(
    'Origins whose pages may read responses, or `*` for all. Empty: CORS is left to the upstream.',
    Type.String({
      pattern: '^(\\*|https?://[^\\s/?#@A-Z]+)$',
      expects: 'an origin in lower case such as https://app.example.com, or *',
    }),
  ),
  preflight: choice(
    'Whether the gateway answers preflight requests itself, or forwards them to the upstream.',
    ['answer', 'forward'],
  ),
  maxAgeSeconds: seconds('How long a browser may remember the answer to a preflight request.', 600),
});

/** What callers may see of their own limits. */
const usageSchema = section('Shows callers their own limits. See docs/customers.md.', {
  path: Type.Optional(
    Type.String({
      description:
        'Path on the port for clients where callers see what is left of their own limits, such as /.well-known/rate-limits. Without it, there is no such path.',
      // Such a path has one spelling, and no dot segment.
      pattern: '^(/\\.?[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$',
      maxLength: 256,
      expects: 'a path such as /.well-known/rate-limits',
    }),
  ),
  requestsPerMinute: whole(
    'Requests for that path per minute and client address, at each replica.',
    60,
    [1, 1_000_000],
  ),
});

const folder = { file: true, expects: 'the path of a folder' };

const watchedObject = closed({
  kind: literals(['ConfigMap', 'Secret'], { description: 'Kind of the object.' }),
  name: Type.String({
    description: "Name of the object in the pod's namespace.",
    pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
    expects: 'the name of a Kubernetes object',
  }),
  folder: text('Folder that it is mounted in.', folder),
});

/** Watching mounted ConfigMaps, which is faster than waiting for the kubelet to update them. */
const kubernetesSchema = section('Watching mounted ConfigMaps through the Kubernetes API.', {
  watch: list(
    'Mounted ConfigMaps and Secrets to watch through the API server, so that a change takes effect within two ' +
      'seconds. Without permission, Weir uses the mounted files.',
    watchedObject,
    { expects: 'a list of objects, each with kind, name and folder' },
  ),
  url: Type.Optional(
    Type.String({
      description: "URL of the API server. Default: the one in the pod's environment.",
      pattern: '^https://[^\\s/?#]+/?$',
      expects: 'an https:// URL without a path',
    }),
  ),
  credentialsFolder: text('Folder with `token`, `ca.crt` and `namespace`. Read again for every connection.', {
    default: '/var/run/secrets/kubernetes.io/serviceaccount',
    ...folder,
  }),
});

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
  journal: journalSchema,
  identity: identitySchema,
  credentials: credentialsSchema,
  operations: operationsSchema,
  limits: section('The points per window of each bucket.', {
    file: filePath('Limits file. Reloaded when it changes.', { default: 'limits.yaml' }),
    overrides: list(
      'Additional files with `accounts`, `organizations`, `addresses` and `principals`, or folders with such files. Reloaded when they change.',
      Type.String({ minLength: 1, file: true, expects: 'a path' }),
    ),
    fields: literals(['contract', 'draft'], {
      description:
        'What clients see of the limits: `contract`, or `draft` to add `qu="points"` to RateLimit-Policy and `violated-policies` to the body of a 429. See docs/headers.md.',
      default: 'contract',
    }),
  }),
  usage: usageSchema,
  notifications: notificationsSchema,
  kubernetes: kubernetesSchema,
  metrics: section('What is measured besides the metrics of Weir. See docs/operating/telemetry.md.', {
    http: flag(
      'Also measure requests by route and status, by the conventions of OpenTelemetry: http.server.request.duration and http.client.request.duration.',
      false,
    ),
  }),
  log: section('Logging to standard output, one JSON object per line.', {
    level: literals(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      description: 'Minimum severity to log.',
      default: 'info',
    }),
    access: flag('Log one line per request.', true),
    fields: Type.Record(
      Type.String({ pattern: '^[A-Za-z0-9]+([._-][A-Za-z0-9]+)+$' }),
      Type.String({ maxLength: 200 }),
      {
        description:
          'Members of every line, such as `{ deployment.environment.name: production }`. A name has a `.`, `_` or `-`, which names of Weir lack.',
        keysExpect: 'have a `.`, `_` or `-` between letters or digits, such as cloud.region',
        default: {},
        additionalProperties: false,
      },
    ),
  }),
});

export type Immutable<T> = T extends object ? { readonly [K in keyof T]: Immutable<T[K]> } : T;

/** weir.yaml with its defaults filled in and its file paths absolute. */
export type Settings = Immutable<Static<typeof settingsSchema>>;
