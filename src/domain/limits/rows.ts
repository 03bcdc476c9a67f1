import type { Access, OperationKind } from '../operation.ts';
import { type PeriodRule, shownRule } from './calendar.ts';
import { type ScopeName, scopeNamed } from './scopes.ts';
import { type Chargeable, type Selection, selects } from './selection.ts';

/** The longest window of a limit: a month. */
export const LONGEST_WINDOW_SECONDS = 31 * 86_400;

/** The highest limit of a row with a window. */
export const MAX_WINDOW_LIMIT = 1_000_000_000;

/** The highest limit of a row with a period: with the cost of a request it is exact as a double, in JavaScript and in Lua. */
export const MAX_PERIOD_LIMIT = 9_000_000_000_000_000;

/** The largest limit of a row. */
export function largestLimitOf({ period }: { readonly period?: unknown }): number {
  return period === undefined ? MAX_WINDOW_LIMIT : MAX_PERIOD_LIMIT;
}

/** A limit with less than this share left is near its end. */
export const NEAR_LIMIT_SHARE = 0.1;

export const KINDS: readonly OperationKind[] = ['read', 'write'];

/** One limit: whose requests it counts, which of them, and in which window. Plain data, which can be sent to a thread. */
export interface LimitRow {
  /** Its name in the store, in the limits file, and in the `extensions` of a 429. */
  readonly name: string;
  /** Its name in the RateLimit headers: contract section 8.1 rule 2 hides the Person's own. */
  readonly headerName: string;
  readonly scope: ScopeName;
  /** Whether it counts what requests cost, the requests themselves, or those that have not ended. */
  readonly counts: 'points' | 'requests' | 'concurrent';
  /** 0 where it counts concurrent requests. The length of a long period where it counts in periods. */
  readonly windowSeconds: number;
  /** The periods of the calendar in which it counts; undefined for a sliding window. */
  readonly period?: PeriodRule | undefined;
  /** False if the counts of a long limit are not recorded. */
  readonly durable?: boolean | undefined;
  readonly selection: Selection;
  /** Whether the contract has it (section 8.1), so that its policy is in the header of reads and writes alike. */
  readonly isContract: boolean;
}

/** A bucket of the contract, which is in every limits file. */
export interface ContractRow extends Omit<LimitRow, 'windowSeconds'> {
  readonly kind: OperationKind;
  /** Points per window, unless the limits file says otherwise. */
  readonly fallback: number;
  /** Whether the limits file may switch the limit off. */
  readonly mayBeNone: boolean;
}

/** Contract section 8.1. Nobody answers for an address, so it has a fifth of an Account's. */
const FALLBACKS = {
  account: { read: 500, write: 250 },
  person: { read: 500, write: 250 },
  address: { read: 100, write: 50 },
  organization: { read: 2000, write: 1000 },
} as const satisfies Readonly<Record<string, Readonly<Record<OperationKind, number>>>>;

const SCOPES_OF_CONTRACT = Object.keys(FALLBACKS) as (keyof typeof FALLBACKS)[];

/** Whether the contract has buckets of this scope. Requests are summed for the owners of these alone. */
export function isContractScope(scope: ScopeName): boolean {
  return Object.hasOwn(FALLBACKS, scope);
}

/** The buckets of the contract: scope by scope, reads before writes. */
export const CONTRACT_ROWS: readonly ContractRow[] = SCOPES_OF_CONTRACT.flatMap((scope) =>
  KINDS.map((kind) => ({
    name: `${scope}-${kind}`,
    headerName: `${scope === 'person' ? 'account' : scope}-${kind}`,
    scope,
    kind,
    counts: 'points' as const,
    selection: { kind },
    isContract: true,
    fallback: FALLBACKS[scope][kind],
    mayBeNone: scope === 'organization',
  })),
);

/** The contract's buckets with the window of a limits file. */
export function contractRows(windowSeconds: number): readonly LimitRow[] {
  return CONTRACT_ROWS.map(({ name, headerName, scope, counts, selection, isContract }) => {
    return { name, headerName, scope, counts, windowSeconds, selection, isContract };
  });
}

const scopesWith = (access: Access): readonly ScopeName[] =>
  SCOPES_OF_CONTRACT.filter((name) => scopeNamed(name).access.includes(access));

/** The scopes that requests of each access are charged to by the contract. */
export const CONTRACT_SCOPES = {
  caller: scopesWith('caller'),
  person: scopesWith('person'),
  public: scopesWith('public'),
};

/** Limits that one RateLimit header names. More would help no client, and fields of unlimited length are refused by some. */
export const MOST_HEADER_ITEMS = 8;

/** The limits that the file adds to the contract's. */
export function furtherRows(rows: readonly LimitRow[]): readonly LimitRow[] {
  return rows.filter(({ isContract }) => !isContract);
}

/** What a row counts, and in which window or period, as operators see it. */
export function countedBy({ scope, counts, windowSeconds, period, selection }: LimitRow) {
  return { scope, counts, windowSeconds, ...(period && { period: shownRule(period) }), ...selection };
}

/** What a limit is of, in texts: `20 concurrent requests`. */
export function unitOf(counts: LimitRow['counts']): string {
  return counts === 'concurrent' ? 'concurrent requests' : counts;
}

/** The limits on what is spent, without those on concurrent requests. */
export function windowedRows(rows: readonly LimitRow[]): readonly LimitRow[] {
  return rows.filter(({ counts }) => counts !== 'concurrent');
}

/** Limits with a shorter window are over before their counts matter to anybody. */
const SHORTEST_RECORDED_SECONDS = 3_600;

/** Whether a journal records what the row counts. */
export function isRecorded({ counts, durable, period, windowSeconds }: LimitRow): boolean {
  if (durable === false || counts === 'concurrent') return false;
  return period !== undefined || windowSeconds >= SHORTEST_RECORDED_SECONDS;
}

/** The limits on requests in flight. Only the program that forwards the requests can count them. */
export function concurrentRows(rows: readonly LimitRow[]): readonly LimitRow[] {
  return rows.filter(({ counts }) => counts === 'concurrent');
}

function isInScope({ scope }: LimitRow, { access, isForBoth }: Chargeable): boolean {
  const { access: of } = scopeNamed(scope);
  return of.includes(access) || (isForBoth === true && of.includes('caller'));
}

/** Whether requests for this operation are charged to the row, for a payer that has an owner of its scope. */
export function isCharged(row: LimitRow, operation: Chargeable): boolean {
  return isInScope(row, operation) && selects(row.selection, operation);
}

/** Whether a row is in the RateLimit-Policy of this operation: the contract's name the limits of reads and of writes. */
export function isInPolicy(row: LimitRow, operation: Chargeable): boolean {
  return row.isContract ? isInScope(row, operation) : isCharged(row, operation);
}
