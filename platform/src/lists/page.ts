import type { Call } from '../http/call.ts';
import { invalid } from '../http/problems.ts';
import { readFilters } from './filters.ts';
import type { TokenSealer } from './token.ts';

/** The source of a list: rows in ascending order of a key that never changes and is never reused. */
export interface ListSource<Row> {
  /** At most `limit` rows with a key above `afterKey`. Keys are whole numbers as text. */
  fetch(afterKey: string, limit: number): Promise<readonly Row[]>;
  keyOf(row: Row): string;
  toBody(row: Row): unknown;
  /**
   * All matches, or any number above `MOST_COUNTED`. Absent if counting is expensive. In both cases `totalSize` is left out (contract
   * section 2.4).
   */
  count?(): Promise<number>;
}

export interface ListRules {
  /** What happens with a token that is stale, forged or of another query (contract section 4.1 rule 6). */
  readonly onStaleToken?: 'restart';
  /** Binds tokens to more than the operation, the caller and the filters. */
  readonly boundTo?: string;
  /** Sealed into tokens: the version of the list that they continue. */
  readonly version?: string;
  /** Default page size. */
  readonly defaultSize?: number;
}

export interface ListBody {
  readonly data: readonly unknown[];
  readonly pagination: { readonly nextPageToken: string; readonly totalSize?: number };
}

/** The position in a list that a token contains. */
export interface PageStart {
  readonly afterKey: string;
  readonly version: string | undefined;
  readonly isExpired: boolean;
}

const DEFAULT_SIZE = 25;

/** Each page counts, so a walk through a longer list would mostly count. */
export const MOST_COUNTED = 10_000;

/**
 * One page of a list, by the conventions of contract section 4.1. Each page reads live data after the last row's key, so
 * a row that does not change appears exactly once, even if others are added or removed.
 */
export async function readPage<Row>(
  sealer: TokenSealer,
  call: Call,
  source: ListSource<Row>,
  rules: ListRules = {},
): Promise<ListBody> {
  const size = Number(call.query['page[size]'] ?? rules.defaultSize ?? DEFAULT_SIZE);
  const afterKey = startOf(sealer, call, rules)?.afterKey ?? '0';
  const [rows, totalSize] = await Promise.all([source.fetch(afterKey, size + 1), source.count?.()]);
  const data = rows.slice(0, size);
  const last = data.at(-1);
  const { version } = rules;
  const seal = (key: string) =>
    sealer.seal(version === undefined ? [key] : [key, version], queryOf(call, rules));
  return {
    data: data.map((row) => source.toBody(row)),
    pagination: {
      nextPageToken: last !== undefined && rows.length > size ? seal(source.keyOf(last)) : '',
      ...(totalSize !== undefined && totalSize <= MOST_COUNTED && { totalSize }),
    },
  };
}

/** The position in the request's page token, or undefined. Throws a 422 for a stale token, unless the list restarts. */
function startOf(sealer: TokenSealer, call: Call, rules: ListRules): PageStart | undefined {
  if (call.query['page[token]'] === undefined) return undefined;
  const start = openPageToken(sealer, call, rules);
  if (start && !start.isExpired) return start;
  if (rules.onStaleToken === 'restart') return undefined;
  throw invalid('page[token]', 'has expired or belongs to another query; start again without it');
}

/** The position in the request's page token, however old. Undefined without a token, and for a token of another query. */
export function openPageToken(sealer: TokenSealer, call: Call, rules: ListRules): PageStart | undefined {
  const token = call.query['page[token]'];
  const opened = token === undefined ? undefined : sealer.open(String(token), queryOf(call, rules));
  const [afterKey, version] = opened?.after ?? [];
  return opened && afterKey !== undefined ? { afterKey, version, isExpired: opened.isExpired } : undefined;
}

function queryOf(call: Call, { boundTo = '' }: ListRules): string {
  return JSON.stringify([call.operationId, call.caller, readFilters(call), boundTo]);
}
