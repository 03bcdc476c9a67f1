import { countOf } from '../../admin/usage/owner-usage.ts';
import type { Caller } from '../../domain/caller.ts';
import { countedBy } from '../../domain/limits/rows.ts';
import type { PayerBuckets } from '../../stages/buckets/buckets.ts';
import { namedLimit, type PayerBucket, shownPeriod } from '../../stages/buckets/payer-bucket.ts';
import { readBuckets } from '../../store/read-buckets.ts';
import type { Store } from '../../store/store.ts';
import type { GatewayDependencies } from '../dependencies.ts';

/** The answer, as JSON has it. docs/rate-limits.openapi.yaml describes it. */
export type OwnUsageAnswer = Awaited<ReturnType<typeof ownUsage>>;

/**
 * The limits of a caller and its Account, and what is left of them, as `weir usage` shows them. It has no ids of others: a 429 by the
 * Organization's limit names the same Organization.
 *
 * @param home the same caller, charged for a Person-only operation; undefined for a service
 */
export async function ownUsage(
  caller: Caller,
  home: Caller | undefined,
  { buckets, store, reports }: GatewayDependencies,
) {
  const { account, organization } = caller;
  const due = buckets.bucketsOf(caller, 'caller');
  // The buckets of a Person are where its own Account is, which may be another slot of Redis Cluster.
  const ofPerson = home === undefined ? [] : enforced(buckets.bucketsOf(home, 'person'), 'person');
  const [own, personal, sum] = await Promise.all([
    shown(enforced(due), store),
    shown(ofPerson, store),
    reports.sumIfRoom({ scope: 'account', id: account }),
  ]);
  const { replicas, ofReplicas, recent, operations } = sum;
  const isCounted = own !== undefined && personal !== undefined;
  return {
    scope: 'account',
    id: account,
    organization: organization ?? null,
    plan: due.plan ?? null,
    asOf: new Date(buckets.nowMs).toISOString(),
    degraded: !isCounted,
    buckets: isCounted
      ? [...own, ...personal]
      : [...enforced(due), ...ofPerson].map((one) => shownBucket(one)),
    replicas,
    ofReplicas,
    recent,
    operations,
  } as const;
}

/** A shadow limit refuses nothing, and is the operator's affair. */
function enforced({ buckets }: PayerBuckets, scope?: PayerBucket['scope']): readonly PayerBucket[] {
  return buckets.filter((one) => one.shadow !== true && (scope === undefined || one.scope === scope));
}

/** Undefined where the store did not answer. */
async function shown(buckets: readonly PayerBucket[], store: Store) {
  const readings = await readBuckets(store, buckets);
  if (readings.outcome === 'uncounted') return undefined;
  return buckets.map((bucket, index) => shownBucket(bucket, readings.buckets[index]));
}

function shownBucket(bucket: PayerBucket, reading?: Parameters<typeof countOf>[1]) {
  const { source, untilMs } = bucket;
  return {
    ...namedLimit(bucket),
    ...countedBy(bucket),
    ...shownPeriod(bucket),
    source,
    until: Number.isFinite(untilMs) ? new Date(untilMs).toISOString() : null,
    ...countOf(bucket, reading),
  };
}
