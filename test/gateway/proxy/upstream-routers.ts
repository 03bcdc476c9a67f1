import { posix } from 'node:path';
import FindMyWay from 'find-my-way';
import createRouter from 'router';
import type { PathProfile } from '../../../src/gateway/normalise.ts';

/** What the test's service can do, and what each costs; concrete paths before templates, as routers want them. */
export const COSTS: Readonly<Record<string, number>> = {
  '/v3/dear': 10,
  '/v3/things/bulk': 7,
  '/v3/things/{id}/open': 5,
  '/v3/things/{id}': 1,
  '/v3/things': 1,
  '/v3/platform/sessions': 10,
  '/v3/{anything}': 1,
};

/** A router as an upstream has it: the path of the operation that a request target runs, undefined for none. */
type UpstreamRouter = (target: string) => string | undefined;

type Profile = PathProfile & { readonly case: 'insensitive' | 'sensitive' };

const SAFE: Profile = {
  case: 'insensitive',
  trailingSlash: 'refuse',
  duplicateSlashes: 'refuse',
  matrixParameters: 'refuse',
};

function findMyWay(options: object): UpstreamRouter {
  const router = FindMyWay({ maxParamLength: 10_000, ...options });
  for (const path of Object.keys(COSTS)) {
    router.on('GET', path.replaceAll(/\{(\w+)\}/g, ':$1'), () => undefined, path);
  }
  return (target) => router.find('GET', target)?.store as string | undefined;
}

function express(options: { caseSensitive?: boolean; strict?: boolean }): UpstreamRouter {
  const router = createRouter(options);
  let ran: string | undefined;
  for (const path of Object.keys(COSTS)) {
    router.get(path.replaceAll(/\{(\w+)\}/g, ':$1'), () => {
      ran = path;
    });
  }
  return (target) => {
    ran = undefined;
    router({ method: 'GET', url: target }, {}, () => {});
    return ran;
  };
}

const tolerant = findMyWay({
  caseSensitive: false,
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  useSemicolonDelimiter: true,
});

const pathOf = (target: string) => target.split('?')[0] ?? '';

/** What stands behind a gateway: how it reads a path, and the profile that says so. */
export const UPSTREAMS: readonly (readonly [name: string, router: UpstreamRouter, profile: Profile])[] = [
  ['find-my-way, strict', findMyWay({}), SAFE],
  ['find-my-way, forgiving', tolerant, SAFE],
  ['Express, as it comes', express({}), SAFE],
  ['Express, strict', express({ caseSensitive: true, strict: true }), SAFE],
  [
    'a framework that goes by the WHATWG URL',
    (target) => tolerant(new URL(target, 'http://upstream').pathname),
    SAFE,
  ],
  [
    'a server that decodes, then resolves dots',
    (target) => tolerant(posix.normalize(decoded(pathOf(target)))),
    SAFE,
  ],
  [
    'a server that decodes twice',
    (target) => tolerant(posix.normalize(decoded(decoded(pathOf(target))))),
    SAFE,
  ],
  [
    'a server that takes backslashes for slashes',
    (target) => tolerant(decoded(pathOf(target)).replaceAll('\\', '/')),
    SAFE,
  ],
  [
    'a servlet that drops matrix parameters',
    (target) => tolerant(decoded(pathOf(target)).replaceAll(/;[^/]*/g, '')),
    SAFE,
  ],
  [
    'one that drops what follows a NUL',
    (target) => tolerant(decoded(pathOf(target)).split('\0')[0] ?? ''),
    SAFE,
  ],
  ['Express, declared to ignore a trailing slash', express({}), { ...SAFE, trailingSlash: 'remove' }],
  [
    'find-my-way, strict, declared so',
    findMyWay({}),
    {
      ...SAFE,
      case: 'sensitive',
      trailingSlash: 'distinct',
      duplicateSlashes: 'distinct',
      matrixParameters: 'literal',
    },
  ],
  [
    'find-my-way, forgiving, declared so',
    tolerant,
    { ...SAFE, trailingSlash: 'remove', duplicateSlashes: 'merge', matrixParameters: 'remove' },
  ],
];

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
