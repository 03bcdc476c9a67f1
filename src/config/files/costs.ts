import { type BucketName, bucketsFor, OVERRIDE_SECTIONS } from '../../domain/buckets.ts';
import type { Limits, Overrides } from '../../domain/limits.ts';
import type { Access, OperationKind } from '../../domain/operation.ts';
import { formatPath, formatPlace, type Place, type Problem } from '../problem.ts';

/** The parts of an operation that the cost check reads. */
export interface CostedOperation {
  readonly id: string;
  readonly kind: OperationKind;
  readonly cost: number;
  readonly access: Access;
  /** Where the cost is set; undefined if it is not set in any file. */
  readonly costWrittenAt?: Place | undefined;
}

/** Where the limits are written. */
export interface LimitPlaces {
  /** The file with this setting. */
  fileOf(path: readonly string[]): string;
  /** The same with the line, which takes longer. */
  locate(path: readonly string[]): Pick<Problem, 'source' | 'line'>;
}

/** Limits that are all in one source, without lines. */
export function placesIn(source: string): LimitPlaces {
  return { fileOf: () => source, locate: () => ({ source }) };
}

/** Problems with a line: finding it parses the file again, and requests wait meanwhile. */
const MAX_LOCATED = 20;

/**
 * One problem for each limit (default or override) that is lower than the cost of an operation charged to it. The problem
 * names the most expensive such operation. Expired overrides are checked too.
 */
export function checkCosts(
  operations: readonly CostedOperation[],
  limits: Limits,
  places: LimitPlaces,
): readonly Problem[] {
  const costliest = costliestByBucket(operations);
  const problems: Problem[] = [];
  const compare = (buckets: Overrides, ...section: readonly string[]) => {
    // There can be 100,000 overrides, and requests wait meanwhile: do not allocate for valid ones.
    for (const bucket in buckets) {
      const limit = buckets[bucket as BucketName]?.limit;
      const operation = costliest.get(bucket as BucketName);
      if (operation === undefined || typeof limit !== 'number' || operation.cost <= limit) continue;
      const path = [...section, bucket];
      const place = problems.length < MAX_LOCATED ? places.locate(path) : { source: places.fileOf(path) };
      problems.push({ ...place, path: formatPath(path), ...tooLow(limit, operation) });
    }
  };
  compare(limits.defaults, 'defaults');
  for (const section of OVERRIDE_SECTIONS) {
    for (const [id, overrides] of limits[section]) compare(overrides, section, id);
  }
  return problems;
}

function tooLow(limit: number, operation: CostedOperation): Pick<Problem, 'message' | 'hint'> {
  return {
    message: `the limit ${limit} is below the cost ${operation.cost} of operation ${operation.id}, which could never be admitted`,
    hint: `raise the limit to at least ${operation.cost}${orLower(operation)}`,
  };
}

function orLower({ costWrittenAt }: CostedOperation): string {
  return costWrittenAt === undefined ? '' : `, or lower the cost at ${formatPlace(costWrittenAt)}`;
}

/** The most expensive operation that is charged to each bucket. */
export function costliestByBucket(
  operations: readonly CostedOperation[],
): ReadonlyMap<BucketName, CostedOperation> {
  const costliest = new Map<BucketName, CostedOperation>();
  for (const operation of operations) {
    for (const { name } of bucketsFor(operation.kind, operation.access)) {
      if (operation.cost > (costliest.get(name)?.cost ?? 0)) costliest.set(name, operation);
    }
  }
  return costliest;
}
