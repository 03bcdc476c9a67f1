import { formatPath } from '../config/problem.ts';
import type { Limits } from '../domain/limits/limits.ts';
import { furtherRows } from '../domain/limits/rows.ts';
import { OVERRIDE_SECTIONS, scopeNamed } from '../domain/limits/scopes.ts';
import { isNamed } from '../domain/limits/selection.ts';
import { shownCount } from '../domain/shown.ts';
import type { BucketStats } from './measure/bucket-stats.ts';
import type { Replay } from './replay.ts';

/** A limit that counted no request, or one entry of its `operations` that names none. */
interface UnmatchedLimit {
  readonly limit: string;
  readonly operation?: string;
}

/** A plan that was given to an Account for the replay alone. */
export interface GivenPlan {
  readonly account: string;
  readonly plan: string;
}

/** Overrides that are named one by one. */
const MOST_NAMED = 5;

/** The plans of Accounts that no request of the log is charged to. */
export function unmatchedPlans(
  plans: readonly GivenPlan[],
  buckets: readonly Pick<BucketStats, 'row' | 'id'>[],
): readonly GivenPlan[] {
  const charged = new Set(buckets.filter(({ row }) => row.scope === 'account').map(({ id }) => id));
  return plans.filter(({ account }) => !charged.has(account));
}

/** One sentence on the overrides of owners that no request of the log is charged to; undefined without any. */
export function unmatchedOverrides(
  limits: Limits,
  plans: readonly GivenPlan[],
  buckets: readonly Pick<BucketStats, 'row' | 'id'>[],
): string | undefined {
  const charged = new Set(buckets.map(({ row, id }) => keyOf(scopeNamed(row.scope).overrides, id)));
  for (const { account } of plans) charged.add(keyOf('accounts', account));
  const unmatched = OVERRIDE_SECTIONS.flatMap((section) =>
    [...limits[section].keys()].filter((id) => !charged.has(keyOf(section, id))).map((id) => [section, id]),
  );
  if (unmatched.length === 0) return undefined;
  const named = unmatched.slice(0, MOST_NAMED).map(formatPath).join(', ');
  const more = unmatched.length - MOST_NAMED;
  const others = more > 0 ? ` and ${shownCount(more)} more` : '';
  return `No request of the log is charged to the owners of these overrides: ${named}${others}.`;
}

function keyOf(section: string, id: string): string {
  return `${section} ${id}`;
}

/** The limits that no request of the log is charged to, or what their selections name in vain. */
export function unmatchedOf(
  replay: Pick<Replay, 'limits' | 'operations' | 'buckets'>,
): readonly UnmatchedLimit[] {
  const operations = [...replay.operations];
  const charged = new Set(replay.buckets.filter(({ hasHadLimit }) => hasHadLimit).map(({ name }) => name));
  return furtherRows(replay.limits.rows).flatMap(({ name: limit, selection }): readonly UnmatchedLimit[] => {
    const unmatched = (selection.operations ?? []).filter(
      (entry) => !operations.some((one) => [one, ...(one.also ?? [])].some((each) => isNamed(entry, each))),
    );
    if (unmatched.length > 0) return unmatched.map((operation) => ({ limit, operation }));
    return charged.has(limit) ? [] : [{ limit }];
  });
}

/** One sentence. */
export function unmatchedText(unmatched: UnmatchedLimit | GivenPlan): string {
  if ('account' in unmatched) {
    const { account, plan } = unmatched;
    return `No request of the log is charged to Account ${account}, which --plan ${account}=${plan} names.`;
  }
  const { limit, operation } = unmatched;
  return operation === undefined
    ? `The limit ${limit} counted no request of the log.`
    : `No request of the log is for ${operation}, which the limit ${limit} names.`;
}
