import { csvHead, csvLine, type PastUsage } from '../admin/usage/past-routes.ts';
import { type ScopeName, scopeNamed } from '../domain/limits/scopes.ts';
import { isPastUsage } from './admin-answers.ts';
import { type AdminOptions, AdminRefusal, askAdmin } from './admin-client.ts';
import { print, printJson } from './print.ts';
import { tableLines } from './terminal/line.ts';
import { standardOutput } from './terminal/output.ts';

export interface UsageOptions extends AdminOptions {
  readonly scope?: string;
  readonly organization?: string;
  readonly account?: string;
  /** A past period instead of the present: `2026`, `2026-11` or `2026-11-25`. */
  readonly period?: string;
  readonly timeZone?: string;
  readonly startsOn?: string;
  readonly csv?: boolean;
  readonly json?: boolean;
}

/** `weir usage ID --period`: what an owner used in a past period, by day, operation and limit. The owner is in the first scope with counts. */
export async function pastUsage(
  scopes: readonly ScopeName[],
  id: string,
  period: string,
  options: UsageOptions,
): Promise<void> {
  const { timeZone = 'UTC', startsOn = '1', csv = false, json = false } = options;
  const query = new URLSearchParams({ period, timeZone, startsOn });
  const past = await firstWithCounts(scopes, async (scope) => {
    const path = `/usage/${scopeNamed(scope).plural}/${encodeURIComponent(id)}?${query}`;
    return (await askAdmin(options, path, isPastUsage)) as PastUsage;
  });
  if (past === undefined) return;
  const { scope, from, to, days } = past;
  const owner = scopes.length === 1 ? `${scope} ${id}` : id;
  if (json) printJson(past);
  else if (csv) standardOutput().write(csvHead + days.map((day) => csvLine({ scope, id, ...day })).join(''));
  else if (days.length === 0) print(`The journal has nothing of ${owner} from ${from} to ${to}.`);
  else print(...linesOf(past));
}

/** If no scope has counts, the answer of the first one that knows the id. Rejects with the refusal of the first if none does. */
async function firstWithCounts(
  scopes: readonly ScopeName[],
  read: (scope: ScopeName) => Promise<PastUsage>,
): Promise<PastUsage | undefined> {
  let first: PastUsage | undefined;
  let refusal: AdminRefusal | undefined;
  for (const scope of scopes) {
    try {
      const past = await read(scope);
      if (past.days.length > 0) return past;
      first ??= past;
    } catch (error) {
      if (!(error instanceof AdminRefusal) || error.status !== 404) throw error;
      refusal ??= error;
    }
  }
  if (first === undefined && refusal !== undefined) throw refusal;
  return first;
}

const COUNTS = ['points', 'requests', 'refused'] as const;

function linesOf({ scope, id, from, to, asOf, limits, days }: PastUsage) {
  const cells = (counts: PastUsage['limits'][number]) => COUNTS.map((name) => `${counts[name]}`);
  return [
    `${scope} ${id} from ${from} to ${to}`,
    '',
    ...tableLines([['limit', ...COUNTS], ...limits.map((one) => [one.limit, ...cells(one)])]),
    '',
    ...tableLines([
      ['day', 'operation', 'limit', ...COUNTS],
      ...days.map((one) => [one.day, one.operation, one.limit, ...cells(one)]),
    ]),
    '',
    `As of ${asOf}.`,
  ];
}
