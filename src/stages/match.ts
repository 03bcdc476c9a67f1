import type { OperationKind } from '../domain/operation.ts';
import { Refusal } from '../domain/problems.ts';
import { combinedSettlement } from '../domain/settlement/combined-settlement.ts';
import type { SettlementRules } from '../domain/settlement/settlement.ts';
import { type SettlementSettings, settlementOf } from '../operations/given-settlement.ts';
import {
  ADDITIONAL_METHODS,
  DEFAULT_COST,
  KINDS_BY_METHOD,
  type ListedOperation,
} from '../operations/listed-operation.ts';
import type { PathProfile } from './path/folded-path.ts';
import { foldedPath } from './path/folded-path.ts';
import { type Route, RouteIndex, STRICTNESS } from './path/route-index.ts';
import type { Operation } from './request-context.ts';

/** The methods that the gateway serves at any path, and the buckets that they spend from (contract 8.1). */
const KINDS: Readonly<Record<string, OperationKind | 'free'>> = { ...KINDS_BY_METHOD, OPTIONS: 'free' };

export const METHODS: readonly string[] = Object.keys(KINDS);

/** Whether an operation can have this method. The text can be anything. */
export function isMethod(method: string): boolean {
  return METHODS.includes(method) || ADDITIONAL_METHODS.has(method);
}

/** The refusal of a method that is not one of `METHODS`. */
export function refuseMethod(): Refusal {
  return new Refusal('MethodNotAllowed', 'The gateway does not serve this method.', {
    headers: { Allow: METHODS.join(', ') },
  });
}

/** The methods of the path where callers see their own limits. */
export const USAGE_METHODS: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

const NOT_READ = new Refusal('MethodNotAllowed', 'The own limits are read with GET.', {
  headers: { Allow: USAGE_METHODS.join(', ') },
});

/** The refusal of another method at that path; undefined for one of these. */
export function refuseUsageMethod(method: string): Refusal | undefined {
  return USAGE_METHODS.includes(method) ? undefined : NOT_READ;
}

/** What happens to a request that no listed operation matches. */
export type UnlistedPolicy =
  | 'charge'
  | 'reject'
  | { readonly cost: number; readonly settlement?: SettlementRules | undefined };

/** What happens to unlisted requests, and which of their responses cost nothing. */
export function unlistedPolicy(
  settings: SettlementSettings & { readonly unlisted: UnlistedPolicy },
): UnlistedPolicy {
  const { unlisted } = settings;
  return unlisted === 'reject'
    ? unlisted
    : { ...costOfUnlisted(unlisted), settlement: settlementOf({}, settings) };
}

function costOfUnlisted(policy: Exclude<UnlistedPolicy, 'reject'>) {
  return policy === 'charge' ? { cost: DEFAULT_COST } : policy;
}

/** The operations, indexed by method and canonical path. They can be replaced while the gateway runs. */
export class OperationTable {
  readonly #unlisted: Readonly<Record<OperationKind, Operation>> | undefined;
  readonly #letterCase: PathProfile['case'];
  readonly #trailingSlash: PathProfile['trailingSlash'];
  #index: RouteIndex;
  #combined = new CombinedOperations();
  #byId: ReadonlyMap<string, ListedOperation>;

  /**
   * @param letterCase `insensitive` is correct for both kinds of upstream
   * @param trailingSlash unless it is `distinct`, a slash at the end makes no difference to the cost
   */
  constructor(
    operations: readonly ListedOperation[],
    unlisted: UnlistedPolicy,
    letterCase: PathProfile['case'] = 'insensitive',
    trailingSlash: PathProfile['trailingSlash'] = 'same',
  ) {
    this.#unlisted = unlisted === 'reject' ? undefined : unlistedOperations(unlisted);
    this.#letterCase = letterCase;
    this.#trailingSlash = trailingSlash;
    this.#index = new RouteIndex(operations, letterCase, trailingSlash);
    this.#byId = byId(operations);
  }

  /** Replaces the operations, from the next request on. Counts are kept. */
  replaceOperations(operations: readonly ListedOperation[]): void {
    this.#index = new RouteIndex(operations, this.#letterCase, this.#trailingSlash);
    this.#combined = new CombinedOperations();
    this.#byId = byId(operations);
  }

  /**
   * The matching operation, `free` for OPTIONS (neither authenticated nor counted), or a refusal. A path that routers read in several
   * ways is charged as all of its operations together.
   *
   * @param folded the path as `foldedPath` gives it
   */
  find(
    method: string,
    path: string,
    folded = foldedPath(path, this.#letterCase),
  ): Operation | 'free' | Refusal {
    const kind = KINDS[method];
    if (kind === undefined) return this.#declared(method, folded);
    if (kind === 'free') return 'free';
    const exact = this.#index.find(method, folded);
    if (exact === 'malformed') return malformed();
    if (exact !== undefined && !folded.includes('.') && this.#index.isAlone(folded, exact)) {
      return exact.operation;
    }
    return this.#charged(method, folded, exact, this.#unlisted?.[kind]);
  }

  /** An operation of a method that is served only where it is declared. */
  #declared(method: string, folded: string): Operation | Refusal {
    if (!ADDITIONAL_METHODS.has(method)) return refuseMethod();
    const found = this.#charged(method, folded, this.#exact(method, folded), undefined);
    return found instanceof Refusal ? refuseMethod() : found;
  }

  #exact(method: string, folded: string): Route | undefined {
    const exact = this.#index.find(method, folded);
    return exact === 'malformed' ? undefined : exact;
  }

  #charged(
    method: string,
    folded: string,
    exact: Route | undefined,
    unlisted: Operation | undefined,
  ): Operation | Refusal {
    const [first, ...more] = this.#index.operationsOf(method, folded, exact);
    if (first === undefined && unlisted === undefined) return notFound();
    const others = this.#index.otherOperationsOf(method, folded, exact);
    if (first !== undefined) return this.#combined.of([first, ...more, ...others]);
    return unlisted === undefined ? notFound() : this.#combined.of([unlisted, ...others]);
  }

  /** The method and the path, with its parameters, of the operation with this id; undefined if there is none. */
  named(id: string): ListedOperation | undefined {
    return this.#byId.get(id);
  }

  /**
   * Whether a path that ends with a slash means one thing only: its operation is declared with the slash, or the path is unlisted with
   * and without it. For OPTIONS, any operation counts.
   *
   * @param folded the path as `foldedPath` gives it
   */
  servesSlash(method: string, folded: string): boolean {
    const methods = KINDS[method] === 'free' ? METHODS : [method];
    return methods.some((one) => this.#declaresSlash(one, folded)) || this.#isUnlisted(methods, folded);
  }

  #declaresSlash(method: string, folded: string): boolean {
    const exact = this.#index.find(method, folded);
    return typeof exact === 'object' && exact.path.endsWith('/');
  }

  /** Always false unless such a path is refused otherwise: the setting `remove` applies to unlisted paths as well. */
  #isUnlisted(methods: readonly string[], folded: string): boolean {
    if (this.#trailingSlash !== 'refuse') return false;
    return methods.every((one) => {
      const exact = this.#index.find(one, folded);
      if (exact !== undefined) return false;
      return (
        this.#index.operationsOf(one, folded, exact).length === 0 &&
        this.#index.otherOperationsOf(one, folded, exact).length === 0
      );
    });
  }
}

function byId(operations: readonly ListedOperation[]): ReadonlyMap<string, ListedOperation> {
  return new Map(operations.map((operation) => [operation.id, operation]));
}

/** The operations that unlisted requests are charged as. */
export function unlistedOperations(
  policy: Exclude<UnlistedPolicy, 'reject'>,
): Readonly<Record<OperationKind, Operation>> {
  const unlisted = { ...costOfUnlisted(policy), id: 'unlisted', access: 'caller', listed: false } as const;
  return { read: { ...unlisted, kind: 'read' }, write: { ...unlisted, kind: 'write' } };
}

function malformed(): Refusal {
  return new Refusal('BadRequest', 'The path has a percent escape that is not valid UTF-8.');
}

function notFound(): Refusal {
  return new Refusal('ResourceNotFound', 'The API has no operation with this method and path.');
}

/** More than an API has. Clients choose the paths, so a set of operations could otherwise have any number. */
const MAX_KNOWN = 1_000;

/** The operations that stand for paths with several meanings, so that each has one identity. */
class CombinedOperations {
  readonly #known = new Map<string, Operation>();
  /** An id may belong to several operations: one operation keeps its id under every base path, and a document may use an id twice. */
  readonly #numbers = new Map<Operation, number>();

  /**
   * The operation that a request is charged as when its path may mean each of these: with the highest cost, the strictest access and the
   * limits of all (`Chargeable`, `bucketsOfSeveral`). It is settled to at least what it would cost as each of them alone
   * (`combinedSettlement`), and validated as the first one, if that is listed; otherwise as the most expensive one, apart from the
   * parameters of the path.
   *
   * @param meanings one or more
   */
  of(meanings: readonly [Operation, ...Operation[]]): Operation {
    const [first] = meanings;
    if (meanings.every((one) => one === first)) return first;
    const key = meanings.map((one) => this.#numberOf(one)).join();
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const combined = combine(meanings);
    if (this.#known.size < MAX_KNOWN) this.#known.set(key, combined);
    return combined;
  }

  #numberOf(operation: Operation): number {
    const number = this.#numbers.get(operation) ?? this.#numbers.size;
    this.#numbers.set(operation, number);
    return number;
  }
}

function combine(meanings: readonly [Operation, ...Operation[]]): Operation {
  const costliest = meanings.reduce((one, other) => (preferred(one, other) ? one : other));
  const strictest = meanings.reduce((one, other) =>
    STRICTNESS[one.access] >= STRICTNESS[other.access] ? one : other,
  );
  const { access } = strictest;
  const cost = Math.max(...meanings.map((one) => one.cost));
  const [first] = meanings;
  const rules = first.listed ? first.rules : rulesOfOther(costliest.rules);
  return {
    ...costliest,
    cost,
    access,
    rules,
    settlement: combinedSettlement(meanings),
    also: meanings.filter((one) => one !== costliest),
    isForBoth: access === 'person' && meanings.some((one) => one.access === 'caller'),
  };
}

/** The rules at a path that no listed operation matches, such as `/index.php/things/42`: the path's parameters are at other places. */
function rulesOfOther(rules: Operation['rules']): Operation['rules'] {
  return rules && { ...rules, path: [] };
}

/** An operation that is not listed gives its name to nothing: no limit can name it. */
function preferred(one: Operation, other: Operation): boolean {
  return one.listed === other.listed ? one.cost >= other.cost : one.listed;
}
