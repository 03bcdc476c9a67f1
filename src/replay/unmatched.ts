import { furtherRows, isCharged, type LimitRow } from '../domain/limits/rows.ts';
import { isNamed } from '../domain/limits/selection.ts';
import type { Operation } from '../stages/request-context.ts';

/** A limit that counted no request, or one entry of its `operations` that names none. */
interface Unmatched {
  readonly limit: string;
  readonly operation?: string;
}

/** What the selections of limits name, and no request of the log was for. */
export function unmatchedOf(
  rows: readonly LimitRow[],
  requested: ReadonlySet<Operation>,
): readonly Unmatched[] {
  const operations = [...requested];
  return furtherRows(rows).flatMap((row): readonly Unmatched[] => {
    const { name: limit, selection } = row;
    const unmatched = (selection.operations ?? []).filter(
      (entry) => !operations.some((one) => [one, ...(one.also ?? [])].some((each) => isNamed(entry, each))),
    );
    if (unmatched.length > 0) return unmatched.map((operation) => ({ limit, operation }));
    return operations.some((one) => isCharged(row, one)) ? [] : [{ limit }];
  });
}

/** One sentence. */
export function unmatchedText({ limit, operation }: Unmatched): string {
  return operation === undefined
    ? `The limit ${limit} counted no request of the log.`
    : `No request of the log is for ${operation}, which the limit ${limit} names.`;
}
