import type { Call } from '../http/call.ts';
import { invalid } from '../http/problems.ts';
import { readFilters } from './filters.ts';
import type { TokenSealer } from './token.ts';

/** What a list is made of: rows in the ascending order of a key that never changes and never comes back. */
export interface ListSource<Row> {
  /** At most `limit` rows whose key is above `afterKey`; keys are whole numbers as text. */
  fetch(afterKey: string, limit: number): Promise<readonly Row[]>;
  keyOf(row: Row): string;
  toBody(row: Row): unknown;
  /** Absent where counting is expensive: `totalSize` is left out then (contract section 2.4). */
  count?(): Promise<number>;
}

export interface ListRules {
  /** What a token that is stale, forged or of another query leads to (contract section 4.1 rule 6). */
  readonly onStaleToken: 'reject' | 'restart';
  /** Added to what a token belongs to, where the operation, the Account and the filters do not say it all. */
  readonly boundTo?: string;
}

export interface ListBody {
  readonly data: readonly unknown[];
  readonly pagination: { readonly nextPageToken: string; readonly totalSize?: number };
}

const DEFAULT_SIZE = 25;

/**
 * One page of a list, by the conventions of contract section 4.1. Pages read live data from after the last row's
 * key, so a row that does not change is met exactly once however many come and go around it.
 */
export async function readPage<Row>(
  sealer: TokenSealer,
  call: Call,
  source: ListSource<Row>,
  rules: ListRules = { onStaleToken: 'reject' },
): Promise<ListBody> {
  const size = Number(call.query['page[size]'] ?? DEFAULT_SIZE);
  const query = JSON.stringify([
    call.operationId,
    call.caller.accountId,
    readFilters(call),
    rules.boundTo ?? '',
  ]);
  const start = startOf(sealer, call, query, rules);
  const [rows, totalSize] = await Promise.all([source.fetch(start, size + 1), source.count?.()]);
  const data = rows.slice(0, size);
  const last = data.at(-1);
  const nextPageToken =
    last !== undefined && rows.length > size ? sealer.seal([source.keyOf(last)], query) : '';
  return {
    data: data.map((row) => source.toBody(row)),
    pagination: { nextPageToken, ...(totalSize !== undefined && { totalSize }) },
  };
}

function startOf(sealer: TokenSealer, call: Call, query: string, rules: ListRules): string {
  const token = call.query['page[token]'];
  if (token === undefined) return '0';
  const [key] = sealer.open(String(token), query) ?? [];
  if (key !== undefined) return key;
  if (rules.onStaleToken === 'restart') return '0';
  throw invalid('page[token]', 'has expired or belongs to another query; start again without it');
}
