import type { Limits } from '../../domain/limits/limits.ts';
import { countedBy } from '../../domain/limits/rows.ts';

/** A limit of the files, as an operator sees it. */
export type ShownRow = ReturnType<typeof shownRows>[number];

/** The limits that the files have for owners without a limit of their own. */
export function shownRows({ rows, defaults }: Limits) {
  return rows.map((row) => ({
    bucket: row.name,
    /** What is counted, and in which window. */
    ...countedBy(row),
    /** Null for none. */
    limit: limitOf(defaults[row.name]?.limit),
    /** A shadow limit refuses nothing. */
    shadow: defaults[row.name]?.shadow ?? false,
  }));
}

function limitOf(limit: number | 'none' | undefined): number | null {
  return typeof limit === 'number' ? limit : null;
}
