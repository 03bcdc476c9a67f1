import { type BucketName, bucketsFor, OVERRIDE_SECTIONS } from '../../domain/buckets.ts';
import type { Limits, Overrides } from '../../domain/limits.ts';
import type { OperationKind } from '../../domain/operation.ts';
import { formatPath, formatPlace, type Place, type Problem } from '../problem.ts';

/** What the check needs to know of an operation. */
export interface PricedOperation {
  readonly id: string;
  readonly kind: OperationKind;
  readonly cost: number;
  readonly personOnly: boolean;
  /** Where the cost is written; undefined for one that is written nowhere. */
  readonly costWrittenAt?: Place | undefined;
}

/**
 * The limits, defaults and overrides, that some operation's cost exceeds, each with its costliest operation. An
 * override that has ended is checked too.
 */
export function checkCosts(
  operations: readonly PricedOperation[],
  limits: Limits,
  source: string,
): readonly Problem[] {
  const costliest = costliestByBucket(operations);
  const problems: Problem[] = [];
  const compare = (buckets: Overrides, ...section: readonly string[]) => {
    // There may be 100,000 of these while requests wait: nothing is made for one that is right.
    for (const bucket in buckets) {
      const limit = buckets[bucket as BucketName]?.limit;
      const operation = costliest.get(bucket as BucketName);
      if (operation === undefined || typeof limit !== 'number' || operation.cost <= limit) continue;
      problems.push(tooLow(limit, operation, source, [...section, bucket]));
    }
  };
  compare(limits.defaults, 'defaults');
  for (const section of OVERRIDE_SECTIONS) {
    for (const [id, overrides] of limits[section]) compare(overrides, section, id);
  }
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

/** The most expensive operation that is charged to each bucket. */
export function costliestByBucket(
  operations: readonly PricedOperation[],
): ReadonlyMap<BucketName, PricedOperation> {
  const costliest = new Map<BucketName, PricedOperation>();
  for (const operation of operations) {
    for (const { name } of bucketsFor(operation.kind, operation.personOnly)) {
      if (operation.cost > (costliest.get(name)?.cost ?? 0)) costliest.set(name, operation);
    }
  }
  return costliest;
}
