import { setImmediate } from 'node:timers/promises';
import { BUCKETS, type BucketName, bucketNamed, OVERRIDE_SECTIONS } from '../../../domain/buckets.ts';
import type { GivenLimit, Limits, Overrides } from '../../../domain/limits.ts';

/** Changes that are listed one by one. */
const MOST_LISTED = 20;

/** Overrides compared before yielding to the event loop: about a millisecond of work. */
const SLICE = 2_000;

/**
 * What changed from one version of the limits to the next, in bounded length. Yields to the event loop, because there may be 100,000
 * overrides.
 */
export async function differenceOf(before: Limits, after: Limits) {
  const counts = { added: 0, removed: 0, changed: 0 };
  const difference: NonNullable<ReturnType<typeof changeOf>>[] = [];
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
    ...(from !== to && { windowSeconds: { from, to } }),
    /** The first changes: defaults, then Accounts, then Organizations, then addresses. */
    difference,
    /** How many more there are. */
    ...(omitted > 0 && { omitted }),
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
) {
  if (from?.limit === to?.limit && from?.shadow === to?.shadow && from?.untilMs === to?.untilMs)
    return undefined;
  const change = from === undefined ? 'added' : to === undefined ? 'removed' : 'changed';
  return {
    change,
    scope: bucketNamed(bucket).scopeName,
    /** The Account, Organization or address; missing for a default. */
    ...(id !== undefined && { id }),
    bucket,
    ...(from && { from: shown(from) }),
    ...(to && { to: shown(to) }),
  } as const;
}

function shown({ limit, shadow, untilMs }: GivenLimit) {
  const until = untilMs === undefined ? undefined : new Date(untilMs).toISOString();
  return { limit, ...(shadow && { shadow }), ...(until && { until }) };
}
