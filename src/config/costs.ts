import type { BucketName, Limits, Overrides } from '../domain/limits.ts';
import { formatPlace, type Place } from './place.ts';
import { formatPath, type Problem } from './problem.ts';

/** What the check needs to know of an operation. */
export interface PricedOperation {
  readonly id: string;
  readonly kind: 'read' | 'write';
  readonly cost: number;
  readonly personOnly: boolean;
  /** Where the cost is written; undefined for one that is written nowhere. */
  readonly costWrittenAt?: Place | undefined;
}

/**
 * The buckets that could never admit some operation because its cost exceeds their limit, each named with the dearest
 * such operation. Both `accounts` and `organizations` overrides are looked through, ended ones included.
 */
export function checkCosts(
  operations: readonly PricedOperation[],
  limits: Limits,
  source: string,
): readonly Problem[] {
  const dearest = dearestByBucket(operations);
  const problems: Problem[] = [];
  const compare = (buckets: Overrides, ...section: readonly string[]) => {
    // There may be 100,000 of these while requests wait: nothing is made for one that is right.
    for (const bucket in buckets) {
      const limit = buckets[bucket as BucketName]?.limit;
      const operation = dearest.get(bucket as BucketName);
      if (operation === undefined || typeof limit !== 'number' || operation.cost <= limit) continue;
      problems.push(tooLow(limit, operation, source, [...section, bucket]));
    }
  };
  compare(limits.defaults, 'defaults');
  for (const [id, overrides] of limits.accounts) compare(overrides, 'accounts', id);
  for (const [id, overrides] of limits.organizations) compare(overrides, 'organizations', id);
  return problems;
}

function tooLow(limit: number, operation: PricedOperation, source: string, path: readonly string[]): Problem {
  return {
    source,
    path: formatPath(path),
    message: `the limit ${limit} is below the cost ${operation.cost} of operation ${operation.id}, which could never pass`,
    hint: `raise the limit to at least ${operation.cost}${orLower(operation)}`,
  };
}

function orLower({ costWrittenAt }: PricedOperation): string {
  return costWrittenAt === undefined ? '' : `, or lower the cost at ${formatPlace(costWrittenAt)}`;
}

function dearestByBucket(operations: readonly PricedOperation[]): ReadonlyMap<BucketName, PricedOperation> {
  const dearest = new Map<BucketName, PricedOperation>();
  for (const operation of operations) {
    const scopes = operation.personOnly ? (['person'] as const) : (['account', 'organization'] as const);
    for (const scope of scopes) {
      const bucket: BucketName = `${scope}-${operation.kind}`;
      if (operation.cost > (dearest.get(bucket)?.cost ?? 0)) dearest.set(bucket, operation);
    }
  }
  return dearest;
}
