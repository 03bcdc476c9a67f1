import { readdirSync } from 'node:fs';

/** What one of the programs is built from, and where to. */
export interface Program {
  readonly name: string;
  /** The folder of its sources, relative to the repository. */
  readonly source: string;
  readonly output: string;
  /** Modules that are loaded by their path, relative to `source` and without `.ts`. They keep their path in `output`. `main` is run. */
  readonly entries: readonly string[];
  /** Packages that stay in node_modules. */
  readonly external: readonly RegExp[];
  /** Packages that others load, but whose functions nothing calls: they are left out. */
  readonly uncalled: readonly string[];
  /** Scripts of pages, relative to `source` and without `.ts`. Each is a file of its own, with what it imports. */
  readonly pages: readonly string[];
  /** Files of packages, or relative to `source`, that are copied: from, and to within `output`. */
  readonly copies: readonly (readonly [string, string])[];
}

export const GATEWAY: Program = {
  name: 'gateway',
  source: 'src',
  output: 'dist',
  entries: [
    'main',
    'store/embedded',
    'config/files/limits/parse-worker',
    'config/files/identities/parse-child',
  ],
  // A development dependency, which only a checkout has.
  external: [/^pino-pretty$/],
  uncalled: [
    // The clients of http-proxy, which only registers a route here.
    'undici',
    'ws',
    // Fastify's, for routes with a schema and for tests.
    '@fastify/ajv-compiler',
    '@fastify/fast-json-stringify-compiler',
    'light-my-request',
  ],
  pages: ['console/browser/console', 'console/browser/report/report-page'],
  copies: [],
};

export const PLATFORM: Program = {
  name: 'platform',
  source: 'platform/src',
  output: 'platform/dist',
  entries: ['main', 'server'],
  // PGlite reads its WebAssembly and its data from its own folder.
  external: [/^@electric-sql\//],
  uncalled: [],
  pages: [],
  copies: [
    ['redoc/bundles/redoc.standalone.js', 'http/redoc.js'],
    ['../../docs/errors.md', 'http/errors.md'],
  ],
};

/** Every module of the program, to be emitted as a file of its own. Pages are built apart. */
export function modulesOf({ source }: Program): string[] {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => /(?<!\.d)\.ts$/.test(file) && !file.includes('browser/'))
    .map((file) => file.slice(0, -3));
}
