import { setImmediate } from 'node:timers/promises';
import { BUCKETS, type BucketName, bucketNamed, OVERRIDE_SECTIONS } from '../../../domain/buckets.ts';
import type { GivenLimit, Limits, Overrides } from '../../../domain/limits.ts';

/** How one limit differs between two versions of the files. */
export interface LimitChange {
  readonly change: 'added' | 'removed' | 'changed';
  readonly scope: string;
  /** The Account, Organization or address; missing for a default. */
  readonly id?: string;
  readonly bucket: BucketName;
  /** Missing for a limit that was added. */
  readonly from?: ShownLimit;
  /** Missing for a limit that was removed. */
  readonly to?: ShownLimit;
}

interface ShownLimit {
  readonly limit: number | 'none';
  readonly shadow?: true;
  readonly until?: string;
}

/** What changed from one version of the limits to the next, in bounded length. */
export interface LimitsDifference {
  readonly added: number;
  readonly removed: number;
  readonly changed: number;
  /** Missing if the window is the same. */
  readonly windowSeconds?: { readonly from: number; readonly to: number };
  /** The first changes: defaults, then Accounts, then Organizations, then addresses. */
  readonly difference: readonly LimitChange[];
  /** How many more there are. */
  readonly omitted?: number;
}

/** Changes that are listed one by one. */
const MOST_LISTED = 20;

/** Overrides compared before yielding to the event loop: about a millisecond of work. */
const SLICE = 2_000;

/** Compares two versions of the limits. Yields to the event loop, because there may be 100,000 overrides. */
export async function differenceOf(before: Limits, after: Limits): Promise<LimitsDifference> {
  const counts = { added: 0, removed: 0, changed: 0 };
  const difference: LimitChange[] = [];
  const note = (id: string | undefined, from: Overrides | undefined, to: Overrides | undefined) => {
    if (from === to) return;
    for (const { name } of BUCKETS) {
      const change = changeOf(name, id, from?.[name], to?.[name]);
      if (change === undefined) continue;
      counts[change.change]++;
      if (difference.length < MOST_LISTED) difference.push(change);
    }
  };
  note(undefined, before.defaults, after.defaults);
  for (const section of OVERRIDE_SECTIONS) {
    let compared = 0;
    for (const id of idsOf(before[section], after[section])) {
      note(id, before[section].get(id), after[section].get(id));
      if (++compared % SLICE === 0) await setImmediate();
    }
  }
  const omitted = counts.added + counts.removed + counts.changed - difference.length;
  const [from, to] = [before.windowSeconds, after.windowSeconds];
  return {
    ...counts,
    ...(from === to ? {} : { windowSeconds: { from, to } }),
    difference,
    ...(omitted === 0 ? {} : { omitted }),
  };
}

function* idsOf(before: ReadonlyMap<string, Overrides>, after: ReadonlyMap<string, Overrides>) {
  yield* after.keys();
  for (const id of before.keys()) if (!after.has(id)) yield id;
}

function changeOf(
  bucket: BucketName,
  id: string | undefined,
  from: GivenLimit | undefined,
  to: GivenLimit | undefined,
): LimitChange | undefined {
  if (from?.limit === to?.limit && from?.shadow === to?.shadow && from?.untilMs === to?.untilMs)
    return undefined;
  return {
    change: from === undefined ? 'added' : to === undefined ? 'removed' : 'changed',
    scope: bucketNamed(bucket).scopeName,
    ...(id === undefined ? {} : { id }),
    bucket,
    ...(from === undefined ? {} : { from: shown(from) }),
    ...(to === undefined ? {} : { to: shown(to) }),
  };
}

function shown({ limit, shadow, untilMs }: GivenLimit): ShownLimit {
  return {
    limit,
    ...(shadow ? { shadow } : {}),
    ...(untilMs === undefined ? {} : { until: new Date(untilMs).toISOString() }),
  };
}
