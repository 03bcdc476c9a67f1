import FindMyWay, { type HTTPMethod } from 'find-my-way';
import type { OperationKind } from '../domain/operation.ts';
import { DEFAULT_COST, KINDS_BY_METHOD, type ListedOperation } from '../openapi/listed-operation.ts';
import { foldCase } from './ascii-forms.ts';
import { Refusal } from './problems.ts';
import type { Operation } from './request-context.ts';
import { routePattern, servedPath } from './route-pattern.ts';

/** The methods that the gateway serves, and the buckets that they spend from (contract 8.1). */
const KINDS: Readonly<Record<string, OperationKind | 'free'>> = { ...KINDS_BY_METHOD, OPTIONS: 'free' };

export const METHODS: readonly string[] = Object.keys(KINDS);

/** The refusal of a method that is not one of `METHODS`. */
export function refuseMethod(): Refusal {
  return new Refusal('MethodNotAllowed', 'The gateway does not serve this method.', {
    headers: { Allow: METHODS.join(', ') },
  });
}

/** What to do with a request that no listed operation matches. */
export type UnlistedPolicy = 'charge' | 'reject' | { readonly cost: number };

/** Whether the upstream's router takes `/Things` and `/things` for one. */
export type LetterCase = 'insensitive' | 'sensitive';

type Router = ReturnType<typeof createRouter>;

/** The price list, ready for look-up by method and canonical path; it may be replaced while requests are under way. */
export class OperationTable {
  readonly #unlisted: Readonly<Record<OperationKind, Operation>> | undefined;
  readonly #letterCase: LetterCase;
  #router: Router;

  /** @param letterCase `insensitive` prices right in front of either kind of upstream */
  constructor(
    operations: readonly ListedOperation[],
    unlisted: UnlistedPolicy,
    letterCase: LetterCase = 'insensitive',
  ) {
    this.#unlisted = unlisted === 'reject' ? undefined : unlistedOperations(unlisted);
    this.#letterCase = letterCase;
    this.#router = routerOf(operations, letterCase);
  }

  /** Puts other operations in force, from the next request on; what has been counted stays. */
  replaceOperations(operations: readonly ListedOperation[]): void {
    this.#router = routerOf(operations, this.#letterCase);
  }

  /** The operation as it was listed, `free` for OPTIONS (neither authenticated nor counted), or why there is none. */
  find(method: string, path: string): Operation | 'free' | Refusal {
    const kind = KINDS[method];
    if (kind === undefined) return refuseMethod();
    if (kind === 'free') return 'free';
    const served = path.includes('%') ? servedPath(path) : path;
    const found = this.#router.find(method as HTTPMethod, inCase(served, this.#letterCase));
    if (found !== null) return (found.store as Operation | null) ?? malformed();
    return this.#unlisted?.[kind] ?? new Refusal('ResourceNotFound', 'There is no such operation.');
  }
}

/** The operations that requests without a listed one are charged as. */
export function unlistedOperations(
  policy: Exclude<UnlistedPolicy, 'reject'>,
): Readonly<Record<OperationKind, Operation>> {
  const cost = policy === 'charge' ? DEFAULT_COST : policy.cost;
  const unlisted = { id: 'unlisted', cost, personOnly: false, listed: false } as const;
  return { read: { ...unlisted, kind: 'read' }, write: { ...unlisted, kind: 'write' } };
}

/** Longer than any request target that Node's parser lets through. */
const MAX_PARAMETER_LENGTH = 1_000_000;

/**
 * A parameter longer than the router's default of 100 characters, or one that is no UTF-8, would make a request for a
 * dear operation an unlisted one: the first is allowed, the second gets a route without an operation.
 */
function createRouter() {
  return FindMyWay({ caseSensitive: true, maxParamLength: MAX_PARAMETER_LENGTH, onBadUrl: () => undefined });
}

function malformed(): Refusal {
  return new Refusal('BadRequest', 'The path has an escape that is not valid UTF-8.');
}

function routerOf(operations: readonly ListedOperation[], letterCase: LetterCase): Router {
  const router = createRouter();
  const routed = new Set<string>();
  const add = (method: string, pattern: string, operation: ListedOperation) => {
    if (routed.has(`${method} ${pattern}`)) return;
    routed.add(`${method} ${pattern}`);
    router.on(method as HTTPMethod, pattern, () => undefined, operation);
  };
  const patternsOf = ({ path }: ListedOperation) => {
    const pattern = routePattern(inCase(path, letterCase));
    return pattern === undefined ? [] : [pattern];
  };
  // Of paths that differ by letter case alone, the dearest comes first and is kept.
  const byCost = operations.toSorted((one, other) => other.cost - one.cost);
  for (const operation of byCost) {
    for (const pattern of patternsOf(operation)) add(operation.method, pattern, operation);
  }
  // HEAD asks for a GET without its body (RFC 9110 section 9.3.2), so it has the GET's price.
  for (const operation of byCost.filter(({ method }) => method === 'GET')) {
    for (const pattern of patternsOf(operation)) add('HEAD', pattern, operation);
  }
  return router;
}

/** Compared with their letter case folded, the literals inside of a parameter's segment included. */
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
