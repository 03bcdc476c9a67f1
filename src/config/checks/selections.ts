import type { Limits } from '../../domain/limits/limits.ts';
import { furtherRows, isCharged, type LimitRow } from '../../domain/limits/rows.ts';
import { scopeNamed } from '../../domain/limits/scopes.ts';
import { isNamed } from '../../domain/limits/selection.ts';
import { type Advice, formatPath, type Problem } from '../problem.ts';
import type { Finding } from '../reader/schema-check.ts';
import { didYouMean } from '../reader/value-messages.ts';
import type { CostedOperation, LimitPlaces } from './costs.ts';

/** Further limits that one request may be charged to. Each can have a shadow limit beside it, and the store takes 32 buckets. */
const MOST_FURTHER = 12;

/** One problem for each limit that counts no request, or less than its list of operations promises; and for too many limits. */
export function checkSelections(
  operations: readonly CostedOperation[],
  { rows }: Limits,
  places: LimitPlaces,
): readonly Problem[] {
  const further = furtherRows(rows);
  const found = [
    ...further.flatMap((row) => rowProblems(row, operations)),
    ...crowdProblems(further, operations),
  ];
  return found.map(({ path, ...problem }) => ({
    ...places.locate(path),
    path: formatPath(path),
    ...problem,
  }));
}

function rowProblems(row: LimitRow, operations: readonly CostedOperation[]): readonly Finding[] {
  const { operations: named = [], tags = [] } = row.selection;
  const path = ['limits', row.name];
  const problems: Finding[] = named.flatMap((entry, index) => {
    const problem = entryProblem(row, entry, operations);
    return problem === undefined ? [] : [{ path: [...path, 'operations', String(index)], ...problem }];
  });
  const unknown = tags.find((tag) => !operations.some((one) => one.tags?.includes(tag)));
  if (unknown !== undefined) problems.push({ path: [...path, 'tags'], ...noSuchTag(unknown, operations) });
  if (problems.length > 0 || operations.some((operation) => isCharged(row, operation))) return problems;
  const message = `selects no operation that is charged per ${row.scope}`;
  return [{ path, message, ...(row.scope === 'address' && { hint: NOT_PUBLIC }) }];
}

function crowdProblems(
  further: readonly LimitRow[],
  operations: readonly CostedOperation[],
): readonly Finding[] {
  const crowded = operations.find(
    (one) => further.filter((row) => isCharged(row, one)).length > MOST_FURTHER,
  );
  if (crowded === undefined) return [];
  const message = `operation ${crowded.id} is charged to more than ${MOST_FURTHER} of these limits`;
  return [{ path: ['limits'], message, hint: 'let each of them select fewer operations' }];
}

/** Why an entry of `operations` counts nothing; undefined if it counts something. */
function entryProblem(
  row: LimitRow,
  entry: string,
  operations: readonly CostedOperation[],
): Advice | undefined {
  const named = operations.filter((operation) => isNamed(entry, operation));
  const [first] = named;
  if (first === undefined) {
    const similar = didYouMean(
      entry,
      operations.map(({ id }) => id),
    );
    const hint =
      similar ?? 'weir operations lists all; one that no document describes goes into operations.list';
    return { message: `no operation is "${entry}"`, hint };
  }
  const { access } = scopeNamed(row.scope);
  if (named.some((operation) => access.includes(operation.access))) return undefined;
  return row.scope === 'address'
    ? {
        message: `${first.id} is not public, and only public operations are counted by address`,
        hint: NOT_PUBLIC,
      }
    : { message: `${first.id} is ${CHARGED_TO[first.access]}, not per ${row.scope}` };
}

const NOT_PUBLIC = 'per: principal limits each caller';

const CHARGED_TO = {
  caller: 'charged per account',
  person: 'for Persons only, and charged per principal',
  public: 'public, and charged per address',
} as const;

function noSuchTag(tag: string, operations: readonly CostedOperation[]): Advice {
  const known = [...new Set(operations.flatMap(({ tags = [] }) => tags))];
  return { message: `no operation has the tag "${tag}"`, hint: didYouMean(tag, known) };
}
