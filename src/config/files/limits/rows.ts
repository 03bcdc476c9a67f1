import type { Static } from 'typebox';
import { parseDuration } from '../../../domain/duration.ts';
import {
  CONTRACT_ROWS,
  contractRows,
  furtherRows,
  type LimitRow,
  LONGEST_WINDOW_SECONDS,
} from '../../../domain/limits/rows.ts';
import { isScopeName } from '../../../domain/limits/scopes.ts';
import type { Advice } from '../../problem.ts';
import type { Finding } from '../../reader/check.ts';
import { isMapping } from '../../reader/schema-node.ts';
import { type limitsSchemaOf, type NamedRow, ROW_NAME } from './schema.ts';

type LimitsContent = Static<ReturnType<typeof limitsSchemaOf>>;
type FurtherLimit = LimitsContent['limits'][string];

/** The names under `limits` of a limits file that has not been checked yet. */
export function namedRows(value: unknown): readonly NamedRow[] {
  const further = isMapping(value) && isMapping(value.limits) ? value.limits : {};
  return Object.entries(further)
    .filter(([name]) => !isTaken(name))
    .map(([name, entry]) => {
      const per = isMapping(entry) ? `${entry.per}` : '';
      return { name, scope: isScopeName(per) ? per : undefined, mayBeNone: true };
    });
}

/** What an overrides file may refer to. */
export function namedRowsOf(rows: readonly LimitRow[]): readonly NamedRow[] {
  return furtherRows(rows).map(({ name, scope }) => ({ name, scope, mayBeNone: true }));
}

/** All rows of a limits file: the contract's first. */
export function rowsOf({ windowSeconds, limits }: LimitsContent, findings: Finding[]): readonly LimitRow[] {
  const further = Object.entries(limits).map(([name, entry]) => {
    const path = ['limits', name];
    const problem = nameProblem(name);
    if (problem !== undefined) findings.push({ path, ...problem });
    return rowOf(name, entry, path, findings);
  });
  if (further.length > MOST_ROWS) {
    const message = `has ${further.length} limits, and at most ${MOST_ROWS} are allowed`;
    findings.push({ path: ['limits'], message });
  }
  return [...contractRows(windowSeconds), ...further];
}

/** Each operation is compared with each of them at every reload. */
const MOST_ROWS = 500;

function rowOf(name: string, entry: FurtherLimit, path: readonly string[], findings: Finding[]): LimitRow {
  const { per, kind, operations, tags } = entry;
  const given = COUNTED.filter((name) => entry[name] !== undefined);
  const [counts = 'points'] = given;
  if (given.length !== 1) {
    const message = given.length === 0 ? 'has no limit' : `has ${given.length} limits`;
    findings.push({ path, message, hint: 'name one of points, requests and concurrent' });
  }
  const windowSeconds = windowOf(entry.window, counts, path, findings);
  return {
    name,
    headerName: name,
    scope: per,
    counts,
    windowSeconds,
    selection: {
      ...(kind === undefined ? {} : { kind }),
      ...(operations === undefined ? {} : { operations }),
      ...(tags === undefined ? {} : { tags }),
    },
    isContract: false,
  };
}

const COUNTED = ['points', 'requests', 'concurrent'] as const;

/** 0 for concurrent requests. */
function windowOf(
  window: string | undefined,
  counts: LimitRow['counts'],
  row: readonly string[],
  findings: Finding[],
): number {
  const path = [...row, 'window'];
  // The schema has checked the text.
  const windowSeconds = (window === undefined ? 0 : parseDuration(window)) ?? 0;
  if (windowSeconds > LONGEST_WINDOW_SECONDS)
    findings.push({ path, message: `must be at most 31d, is "${window}"` });
  if (counts === 'concurrent' && window !== undefined) {
    const hint = 'a limit on concurrent requests has no window: leave it out';
    findings.push({ path, message: 'is not allowed here', hint });
  }
  if (counts !== 'concurrent' && window === undefined)
    findings.push({ path: row, message: 'has no window', hint: 'such as window: 1m' });
  return windowSeconds;
}

const MAX_NAME_LENGTH = 40;

/** Words with another meaning where limits are named: in an override, and in a request for a live limit. */
const RESERVED: ReadonlySet<string> = new Set([
  'until',
  'plan',
  'for',
  'why',
  'by',
  'bucket',
  'blocked',
  'none',
]);

function isTaken(name: string): boolean {
  return CONTRACT_ROWS.some((row) => row.name === name) || RESERVED.has(name);
}

function nameProblem(name: string): Advice | undefined {
  if (isTaken(name)) return { message: 'this name is taken', hint: 'give the limit another name' };
  // The store keeps the count of a shadow limit under the name with this ending.
  if (name.endsWith('-shadow')) return { message: 'a name must not end in -shadow' };
  if (new RegExp(ROW_NAME).test(name) && name.length <= MAX_NAME_LENGTH) return undefined;
  return {
    message: `a name has at most ${MAX_NAME_LENGTH} lower-case letters, digits and single hyphens, and begins with a letter`,
    hint: 'such as account-minute',
  };
}
