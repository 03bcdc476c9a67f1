import { openMemoryArchive } from '../../admin/why/memory-archive.ts';
import { Why, type WhySources } from '../../admin/why/why.ts';
import { Ignored } from '../../facts/ignored.ts';
import type { Configuration } from '../configuration.ts';
import type { Reported } from './reported.ts';

/** Keeps why requests were refused, in the store that replicas share, or in memory. */
export function runWhy(
  { files }: Configuration,
  { sharing, buckets, clock, metrics, log, store }: Reported,
  charges: WhySources['charges'],
): Why {
  const shared = sharing.store;
  const nowMs = () => clock.nowMs();
  const { replica } = store.slots;
  let isLogged = false;
  const sources: WhySources = {
    charges,
    nowMs,
    rows: () => buckets.limits.rows,
    limits: () => buckets.limits,
    writtenAt: (bucket) => files.limits.writtenAt(bucket),
    ignored: new Ignored('summary', metrics, log),
    unfindable(count) {
      metrics.refusalsUnfindable(count);
      if (isLogged) return;
      isLogged = true;
      log.warn({ count }, 'weir why does not find all refused requests: a flood had more than is kept');
    },
  };
  const archive = shared?.openArchive('refusals') ?? openMemoryArchive(nowMs);
  return new Why(replica, sources, archive, shared?.openBoard('refused', replica));
}
