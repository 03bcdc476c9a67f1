import type { Logger } from 'pino';
import { bucketNamed } from '../../domain/buckets.ts';
import { type LimitInForce, limitInForce } from '../../domain/limits.ts';
import type { LiveLimit } from '../../domain/live-limits.ts';
import type { Buckets } from '../../gateway/buckets.ts';

/**
 * Puts a live limit, or its removal, in force in this process and logs `limits.changed`. Does nothing if that is known already,
 * so each replica logs each change once, the one that made it as well.
 */
export function applyLive(buckets: Buckets, live: LiveLimit, log: Logger): void {
  const { bucket, id, limit, untilMs, isRemoved, why, by } = live;
  const nowMs = Date.now();
  const before = buckets.live.find(bucket, id, nowMs);
  const isChanged = buckets.applyLive(live);
  if (!isChanged || (isRemoved && before === undefined)) return;
  const filed = inFiles(limitInForce(buckets.limits, bucket, id, nowMs));
  const from = before === undefined ? filed : ofLive(before);
  const to = isRemoved ? filed : ofLive({ limit, untilMs });
  const change = isRemoved ? 'removed' : before === undefined ? 'added' : 'changed';
  const counts = { added: 0, removed: 0, changed: 0, [change]: 1 };
  const difference = [{ change, scope: bucketNamed(bucket).scopeName, id, bucket, from, to }];
  log.info({ source: 'live', why, by, ...counts, difference }, 'limits.changed');
}

function ofLive({ limit, untilMs }: Pick<LiveLimit, 'limit' | 'untilMs'>): object {
  return { limit, until: new Date(untilMs).toISOString() };
}

function inFiles({ limit }: LimitInForce): object {
  return { limit: limit ?? 'none' };
}
