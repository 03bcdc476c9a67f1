import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { asPublication } from '../../admin/fleet/owner-report.ts';
import { type ReplicaSlots, slotsByReplica } from '../../admin/usage/slots-by-replica.ts';
import type { Settings } from '../../config/settings/settings.ts';
import { parsed } from '../../facts/message-bounds.ts';
import type { PayerBucket } from '../../stages/buckets/payer-bucket.ts';
import { openShared, openStore } from '../../store/open-store.ts';
import { readBuckets } from '../../store/read-buckets.ts';

/** How long the command waits for Redis, and between two attempts. */
const WAIT_MS = 1_000;
const RETRY_MS = 20;

/** Who holds the slots of these buckets, by key. Undefined where Redis does not answer, or no other process shares the store. */
export async function readSlots(
  settings: Settings['store'],
  buckets: readonly PayerBucket[],
): Promise<ReadonlyMap<string, readonly ReplicaSlots[] | null> | undefined> {
  const shared = openShared(settings);
  if (shared === undefined || buckets.length === 0) return undefined;
  const patient = { ...settings, deadlineMs: WAIT_MS };
  const store = openStore(patient);
  const reports = shared.openBoard('owners', randomBytes(12).toString('base64url'));
  try {
    const readings = await tried(async () => {
      const read = await readBuckets(store, buckets);
      return read.outcome === 'read' ? read.buckets : undefined;
    });
    const board = await tried(() => reports.read().catch(() => undefined));
    const names = [...(board?.texts ?? [])].map(([replica, text]) => {
      return [replica, asPublication(parsed(text))?.name ?? replica] as const;
    });
    return (
      readings &&
      new Map(buckets.map(({ key }, index) => [key, slotsByReplica(readings[index], new Map(names))]))
    );
  } finally {
    await Promise.all([store.close(), reports.close()]);
  }
}

/** The result once there is one, which takes a connection. */
async function tried<T>(read: () => Promise<T | undefined>): Promise<T | undefined> {
  const untilMs = performance.now() + WAIT_MS;
  for (;;) {
    const result = await read();
    if (result !== undefined || performance.now() > untilMs) return result;
    await setTimeout(RETRY_MS);
  }
}
