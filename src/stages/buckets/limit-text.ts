import { limitTimeText, roundedDuration } from '../../domain/duration.ts';
import { ownerText } from '../../domain/limits/scopes.ts';
import { costIn, isConcurrent } from '../../store/store.ts';
import type { PayerBucket } from './payer-bucket.ts';

/**
 * Why this bucket refuses a request, and when it fits.
 *
 * @param cost what it costs or reserves
 * @param isPart whether it is this replica's part of the limit that has no room
 */
export function limitText(
  bucket: PayerBucket,
  remaining: number,
  cost: number,
  waitSeconds: number,
  isPart = false,
): string {
  const owner = ownerText(bucket.scope, bucket.owner);
  if (isConcurrent(bucket)) return concurrentText(bucket, owner, isPart);
  const limit = `${isPart ? "this replica's part of its" : 'its'} ${amountText(bucket)} ${limitTimeText(bucket)}${selectionText(bucket)}`;
  const wait = waitText(bucket, waitSeconds);
  if (remaining === 0) return `${owner} has used ${limit}; ${wait}.`;
  const left = remaining.toLocaleString('en');
  return `${owner} has ${left} left of ${limit}, and this request needs ${costIn(bucket, cost)}; ${wait}.`;
}

/** Nobody plans by hours and days, but everybody by dates. */
function waitText({ calendar, span }: PayerBucket, waitSeconds: number): string {
  const wait = roundedDuration(waitSeconds, Math.ceil);
  if (calendar === undefined || span === undefined) return `try again in ${wait}`;
  const { unit } = calendar.rule;
  if (unit === 'hour' || unit === 'day') return `this ${unit} ends in ${wait}`;
  return `this ${unit} ends on ${calendar.shown(span.endMs)}`;
}

/** Slots become free when responses end, which nobody can foresee. */
function concurrentText(bucket: PayerBucket, owner: string, isPart: boolean): string {
  const { limit } = bucket;
  const requests = limit === 1 ? '1 request' : `${limit.toLocaleString('en')} requests`;
  const verb = isPart ? "has used this replica's part of its" : 'may have';
  return `${owner} ${verb} ${requests} in progress at the same time${selectionText(bucket)}; try again when one has ended.`;
}

function amountText({ limit, counts }: PayerBucket): string {
  return limit === 1 ? `1 ${counts.slice(0, -1)}` : `${limit.toLocaleString('en')} ${counts}`;
}

/** What is counted, where that is not every request. */
function selectionText({ name, selection }: PayerBucket): string {
  const { kind, operations, tags } = selection;
  if (operations !== undefined || tags !== undefined) return ` for ${name}`;
  return kind === undefined ? '' : ` for ${kind}s`;
}
