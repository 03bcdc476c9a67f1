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

/** Whether the upstream's router takes `/Things` and `/things` for one. */
type LetterCase = 'insensitive' | 'sensitive';

/** find-my-way's own bound is 100: a longer id would be an unlisted operation here and a listed one upstream. */
const MAX_SEGMENT_LENGTH = 65_536;

/** The price list, ready for look-up by method and canonical path. */
export class PriceList {
  readonly #router: FindMyWay.Instance<FindMyWay.HTTPVersion.V1>;
  readonly #unlisted: UnlistedPolicy;

  /** @param letterCase `insensitive` prices right in front of either kind of upstream */
  constructor(
    operations: readonly ListedOperation[],
    unlisted: UnlistedPolicy,
    letterCase: LetterCase = 'insensitive',
  ) {
    this.#unlisted = unlisted;
    this.#router = FindMyWay({
      caseSensitive: letterCase === 'sensitive',
      maxParamLength: MAX_SEGMENT_LENGTH,
    });
    const declared = new Set(operations.map(({ method, path }) => `${method} ${path}`));
    // Of paths that differ by letter case alone, the dearest comes first and is kept.
    const byCost = operations.toSorted((a, b) => b.cost - a.cost);
    for (const { method, path, id, kind, cost, personOnly } of byCost) {
      this.#add(method, path, { id, kind, cost, personOnly, listed: true });
      // HEAD asks for a GET without its body (RFC 9110 section 9.3.2), so it has the GET's price.
      if (method === 'GET' && !declared.has(`HEAD ${path}`)) {
        this.#add('HEAD', path, { id, kind, cost, personOnly, listed: true });
      }
    }
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

  #add(method: string, path: string, operation: Operation): void {
    const pattern = path.replaceAll(':', '::').replaceAll(/\{([^}]+)\}/g, (_, name: string) => `:${name}`);
    if (this.#router.hasRoute(method as HTTPMethod, pattern)) return;
    this.#router.on(method as HTTPMethod, pattern, () => undefined, operation);
  }
}
