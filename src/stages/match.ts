import FindMyWay, { type HTTPMethod } from 'find-my-way';
import type { OperationKind } from '../domain/operation.ts';
import { Refusal } from '../domain/problems.ts';
import { DEFAULT_COST, KINDS_BY_METHOD, type ListedOperation } from '../openapi/listed-operation.ts';
import { foldCase } from './path/ascii-forms.ts';
import { routePattern, servedPath } from './path/route-pattern.ts';
import type { Operation } from './request-context.ts';

/** The methods that the gateway serves, and the buckets that they spend from (contract 8.1). */
const KINDS: Readonly<Record<string, OperationKind | 'free'>> = { ...KINDS_BY_METHOD, OPTIONS: 'free' };

export const METHODS: readonly string[] = Object.keys(KINDS);

/** The refusal of a method that is not one of `METHODS`. */
export function refuseMethod(): Refusal {
  return new Refusal('MethodNotAllowed', 'The gateway does not serve this method.', {
    headers: { Allow: METHODS.join(', ') },
  });
}

/** What happens to a request that no listed operation matches. */
export type UnlistedPolicy = 'charge' | 'reject' | { readonly cost: number };

/** What a request for `/things/` is, where only `/things` is declared. */
export type TrailingSlash = 'refuse' | 'remove' | 'distinct';

/** Whether the upstream's router treats `/Things` and `/things` as the same path. */
export type LetterCase = 'insensitive' | 'sensitive';

type Router = ReturnType<typeof createRouter>;

/** The operations, indexed by method and canonical path. They can be replaced while the gateway runs. */
export class OperationTable {
  readonly #unlisted: Readonly<Record<OperationKind, Operation>> | undefined;
  readonly #letterCase: LetterCase;
  readonly #trailingSlash: TrailingSlash;
  #router: Router;
  #byId: ReadonlyMap<string, ListedOperation>;

  /**
   * @param letterCase `insensitive` is correct for both kinds of upstream
   * @param trailingSlash unless it is `distinct`, `/things` costs as much as a declared `/things/`
   */
  constructor(
    operations: readonly ListedOperation[],
    unlisted: UnlistedPolicy,
    letterCase: LetterCase = 'insensitive',
    trailingSlash: TrailingSlash = 'refuse',
  ) {
    this.#unlisted = unlisted === 'reject' ? undefined : unlistedOperations(unlisted);
    this.#letterCase = letterCase;
    this.#trailingSlash = trailingSlash;
    this.#router = routerOf(operations, letterCase, trailingSlash);
    this.#byId = byId(operations);
  }

  /** Replaces the operations, from the next request on. Counts are kept. */
  replaceOperations(operations: readonly ListedOperation[]): void {
    this.#router = routerOf(operations, this.#letterCase, this.#trailingSlash);
    this.#byId = byId(operations);
  }

  /** The matching operation, `free` for OPTIONS (neither authenticated nor counted), or a refusal. */
  find(method: string, path: string): Operation | 'free' | Refusal {
    const kind = KINDS[method];
    if (kind === undefined) return refuseMethod();
    if (kind === 'free') return 'free';
    const found = this.#route(method, path);
    if (found !== null) return (found.store as Operation | null) ?? malformed();
    return (
      this.#unlisted?.[kind] ??
      new Refusal('ResourceNotFound', 'The API has no operation with this method and path.')
    );
  }

  /** The method and the path, with its parameters, of the operation with this id; undefined if there is none. */
  named(id: string): Pick<ListedOperation, 'method' | 'path'> | undefined {
    return this.#byId.get(id);
  }

  /**
   * Whether a path that ends with a slash means one thing only: its operation is declared with the slash, or the path is unlisted with
   * and without it. For OPTIONS, any operation counts.
   */
  servesSlash(method: string, path: string): boolean {
    const methods = KINDS[method] === 'free' ? METHODS : [method];
    return methods.some((one) => this.#declaresSlash(one, path)) || this.#isUnlisted(methods, path);
  }

  #declaresSlash(method: string, path: string): boolean {
    const operation = this.#route(method, path)?.store as ListedOperation | null | undefined;
    return operation?.path.endsWith('/') ?? false;
  }

  /** Always false unless such a path is refused otherwise: the setting `remove` applies to unlisted paths as well. */
  #isUnlisted(methods: readonly string[], path: string): boolean {
    if (this.#trailingSlash !== 'refuse') return false;
    const bare = path.replace(/(?<!\/)\/+$/, '') || '/';
    return methods.every((one) => this.#route(one, path) === null && this.#route(one, bare) === null);
  }

  #route(method: string, path: string) {
    const served = path.includes('%') ? servedPath(path) : path;
    return this.#router.find(method as HTTPMethod, inCase(served, this.#letterCase));
  }
}

function byId(operations: readonly ListedOperation[]): ReadonlyMap<string, ListedOperation> {
  return new Map(operations.map((operation) => [operation.id, operation]));
}

/** The operations that unlisted requests are charged as. */
export function unlistedOperations(
  policy: Exclude<UnlistedPolicy, 'reject'>,
): Readonly<Record<OperationKind, Operation>> {
  const cost = policy === 'charge' ? DEFAULT_COST : policy.cost;
  const unlisted = { id: 'unlisted', cost, access: 'caller', listed: false } as const;
  return { read: { ...unlisted, kind: 'read' }, write: { ...unlisted, kind: 'write' } };
}

/** Longer than any request target that Node's parser lets through. */
const MAX_PARAMETER_LENGTH = 1_000_000;

/**
 * A parameter longer than the router's default of 100 characters, or one that is not UTF-8, would turn a request for an
 * expensive operation into an unlisted one. Long parameters are allowed; invalid UTF-8 matches a route without an operation.
 */
function createRouter() {
  return FindMyWay({ caseSensitive: true, maxParamLength: MAX_PARAMETER_LENGTH, onBadUrl: () => undefined });
}

function malformed(): Refusal {
  return new Refusal('BadRequest', 'The path has a percent escape that is not valid UTF-8.');
}

function routerOf(
  operations: readonly ListedOperation[],
  letterCase: LetterCase,
  trailingSlash: TrailingSlash,
): Router {
  const router = createRouter();
  const routed = new Set<string>();
  for (const { method, pattern, operation } of routesOf(operations, letterCase, trailingSlash)) {
    if (routed.has(`${method} ${pattern}`)) continue;
    routed.add(`${method} ${pattern}`);
    router.on(method as HTTPMethod, pattern, () => undefined, operation);
  }
  return router;
}

/** Every route, in the order of precedence. */
function routesOf(
  operations: readonly ListedOperation[],
  letterCase: LetterCase,
  trailingSlash: TrailingSlash,
) {
  // Of paths that differ only in letter case, one that needs a caller comes first and is kept, then the most expensive one.
  const inOrder = operations.toSorted(
    (one, other) => openness(one) - openness(other) || other.cost - one.cost,
  );
  const declared = inOrder.flatMap((operation) => {
    const pattern = routePattern(inCase(operation.path, letterCase));
    return pattern === undefined ? [] : [{ method: operation.method, pattern, operation }];
  });
  // HEAD asks for a GET without its body (RFC 9110 section 9.3.2), so it has the GET's cost.
  const heads = declared
    .filter(({ method }) => method === 'GET')
    .map((route) => ({ ...route, method: 'HEAD' }));
  const routes = [...declared, ...heads];
  if (trailingSlash === 'distinct') return routes;
  // Many routers serve or redirect `/things` where `/things/` is declared.
  const slashed = routes.filter(({ pattern }) => pattern.length > 1 && pattern.endsWith('/'));
  return [...routes, ...slashed.map((route) => ({ ...route, pattern: route.pattern.slice(0, -1) }))];
}

function openness({ access }: ListedOperation): number {
  return access === 'public' ? 1 : 0;
}

/** Folds letter case, including that of literals within a parameter's segment. */
function inCase(path: string, letterCase: LetterCase): string {
  if (letterCase === 'sensitive') return path;
  return path.includes('%') ? foldCase(decodedText(path)) : foldCase(path);
}

/** Undoes the escapes of characters that are not ASCII; those that are not UTF-8 stay. */
function decodedText(path: string): string {
  return path.replaceAll(/(?:%[89A-F][0-9A-F])+/gi, (octets) => {
    try {
      return decodeURIComponent(octets);
    } catch {
      return octets;
    }
  });
}
