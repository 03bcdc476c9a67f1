import { isCharged, isInPolicy, type LimitRow } from '../../domain/limits/rows.ts';
import { scopeNamed } from '../../domain/limits/scopes.ts';
import type { Access } from '../../domain/operation.ts';
import type { Operation } from '../request-context.ts';

/** The limits that requests for some operations are charged to. */
export interface RowSet {
  readonly access: Access;
  /** Those that the RateLimit-Policy header names, which include those that are charged. */
  readonly policy: readonly LimitRow[];
  readonly charged: ReadonlySet<LimitRow>;
  /** Whether one of them counts each principal for itself. */
  readonly isPerPrincipal: boolean;
}

/** The row set of each operation. Operations with the same rows share one, so that payers have few. */
export class RowSets {
  readonly #rows: readonly LimitRow[];
  readonly #byRows = new Map<string, RowSet>();
  /** Operations come and go with their own files, and requests that are under way keep those of before. */
  readonly #byOperation = new WeakMap<Operation, RowSet>();

  constructor(rows: readonly LimitRow[]) {
    this.#rows = rows;
  }

  of(operation: Operation): RowSet {
    const known = this.#byOperation.get(operation);
    if (known !== undefined) return known;
    const set = this.#make(operation);
    this.#byOperation.set(operation, set);
    return set;
  }

  /** Every row that requests of this access can be charged to, whatever their operation. */
  whole(access: Access): RowSet {
    const rows = this.#rows.filter(({ scope }) => scopeNamed(scope).access.includes(access));
    return { access, policy: rows, charged: new Set(rows), isPerPrincipal: true };
  }

  #make(operation: Operation): RowSet {
    const { access } = operation;
    const policy = this.#rows.filter((row) => isInPolicy(row, operation));
    const charged = policy.filter((row) => isCharged(row, operation));
    const key = [access, ...policy.map(({ name }) => name), '', ...charged.map(({ name }) => name)].join(' ');
    const known = this.#byRows.get(key);
    if (known !== undefined) return known;
    const isPerPrincipal = charged.some(
      ({ scope, isContract }) => !isContract && scopeNamed(scope).isPerPrincipal,
    );
    const set = { access, policy, charged: new Set(charged), isPerPrincipal };
    this.#byRows.set(key, set);
    return set;
  }
}
