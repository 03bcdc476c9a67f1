import FindMyWay, { type HTTPMethod } from 'find-my-way';
import type { ListedOperation } from '../config/openapi.ts';
import { Refusal } from './problems.ts';
import type { Operation, OperationKind } from './types.ts';

/** The methods that the gateway serves, and the buckets that they spend from (contract 8.1). */
const KINDS: Readonly<Record<string, OperationKind | 'free'>> = {
  GET: 'read',
  HEAD: 'read',
  POST: 'write',
  PUT: 'write',
  PATCH: 'write',
  DELETE: 'write',
  OPTIONS: 'free',
};

export const METHODS: readonly string[] = Object.keys(KINDS);

/** The cost of an operation that the document does not list (contract 8.1 rule 3: most cost 1). */
const UNLISTED_COST = 1;

/** What to do with a request that no listed operation matches. */
type UnlistedPolicy = 'charge' | 'reject';

/** The price list, ready for look-up by method and canonical path. */
export class PriceList {
  #router = newRouter();
  readonly #unlisted: UnlistedPolicy;

  constructor(operations: readonly ListedOperation[], unlisted: UnlistedPolicy) {
    this.#unlisted = unlisted;
    this.replaceOperations(operations);
  }

  /** Puts other operations in force, from the next request on. */
  replaceOperations(operations: readonly ListedOperation[]): void {
    const router = newRouter();
    const declared = new Set(operations.map(({ method, path }) => `${method} ${path}`));
    for (const { method, path, id, kind, cost, personOnly } of operations) {
      add(router, method, path, { id, kind, cost, personOnly, listed: true });
      // HEAD asks for a GET without its body (RFC 9110 section 9.3.2), so it has the GET's price.
      if (method === 'GET' && !declared.has(`HEAD ${path}`)) {
        add(router, 'HEAD', path, { id, kind, cost, personOnly, listed: true });
      }
    }
    this.#router = router;
  }

  /** The operation, `free` for OPTIONS (neither authenticated nor counted), or why there is none. */
  find(method: string, path: string): Operation | 'free' | Refusal {
    const kind = KINDS[method];
    if (kind === undefined) {
      return new Refusal('MethodNotAllowed', 'The gateway does not serve this method.', {
        headers: { Allow: METHODS.join(', ') },
      });
    }
    if (kind === 'free') return 'free';
    const found = this.#router.find(method as HTTPMethod, path);
    if (found !== null) return found.store as Operation;
    if (this.#unlisted === 'reject') return new Refusal('ResourceNotFound', 'There is no such operation.');
    return { id: 'unlisted', kind, cost: UNLISTED_COST, personOnly: false, listed: false };
  }
}

function newRouter() {
  return FindMyWay({ caseSensitive: true });
}

function add(router: ReturnType<typeof newRouter>, method: string, path: string, operation: Operation): void {
  const pattern = path.replaceAll(':', '::').replaceAll(/\{([^}]+)\}/g, (_, name: string) => `:${name}`);
  router.on(method as HTTPMethod, pattern, () => undefined, operation);
}
