import type { Limits } from '../../domain/limits/limits.ts';

/** A limit of the files, as an operator sees it. */
export type ShownRow = ReturnType<typeof shownRows>[number];

/** The limits that the files have for owners without a limit of their own. */
export function shownRows({ rows, defaults }: Limits) {
  return rows.map(({ name, scope, counts, windowSeconds, selection }) => ({
    bucket: name,
    /** Whose requests are counted together. */
    scope,
    /** Null for none. */
    limit: limitOf(defaults[name]?.limit),
    counts,
    windowSeconds,
    /** A shadow limit refuses nothing. */
    shadow: defaults[name]?.shadow ?? false,
    /** What is counted, where that is not everything. */
    ...selection,
  }));
}

function limitOf(limit: number | 'none' | undefined): number | null {
  return typeof limit === 'number' ? limit : null;
}
