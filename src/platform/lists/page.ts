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
  readonly onStaleToken?: 'restart';
  /** Added to what a token belongs to, where the operation, the Account and the filters do not say it all. */
  readonly boundTo?: string;
  /** Sealed into the tokens: which of several versions of the list they continue. */
  readonly version?: string;
  /** Results on a page where the request does not say. */
  readonly defaultSize?: number;
}

export interface ListBody {
  readonly data: readonly unknown[];
  readonly pagination: { readonly nextPageToken: string; readonly totalSize?: number };
}

/** Where a page begins, as its token says. */
export interface PageStart {
  readonly afterKey: string;
  readonly version: string | undefined;
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
  rules: ListRules = {},
): Promise<ListBody> {
  const size = Number(call.query['page[size]'] ?? rules.defaultSize ?? DEFAULT_SIZE);
  const afterKey = openPageToken(sealer, call, rules)?.afterKey ?? '0';
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
      ...(totalSize !== undefined && { totalSize }),
    },
  };
}

/** What the request's page token says; undefined without one. 422 when it is stale, unless the list starts again then. */
export function openPageToken(sealer: TokenSealer, call: Call, rules: ListRules): PageStart | undefined {
  const token = call.query['page[token]'];
  if (token === undefined) return undefined;
  const [afterKey, version] = sealer.open(String(token), queryOf(call, rules)) ?? [];
  if (afterKey !== undefined) return { afterKey, version };
  if (rules.onStaleToken === 'restart') return undefined;
  throw invalid('page[token]', 'has expired or belongs to another query; start again without it');
}

function queryOf(call: Call, { boundTo = '' }: ListRules): string {
  return JSON.stringify([call.operationId, call.caller.accountId, readFilters(call), boundTo]);
}
