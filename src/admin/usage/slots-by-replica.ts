import type { BucketReading } from '../../store/read-buckets.ts';
import { NO_REPLICA } from '../../store/store.ts';

/** The slots of one bucket that the requests of one replica hold. */
export interface ReplicaSlots {
  /** `programs` for the slots of all decisions that programs hold, which belong to no replica. */
  readonly replica: string;
  /** Its host name; null if it has not reported. */
  readonly name: string | null;
  readonly inFlight: number;
}

const PROGRAMS = { replica: 'programs', name: 'held by programs' };

/** Who holds the slots of a bucket, most first; null where the store did not answer. */
export function slotsByReplica(
  reading: BucketReading | undefined,
  names: ReadonlyMap<string, string>,
): readonly ReplicaSlots[] | null {
  if (reading === undefined) return null;
  const shares: ReplicaSlots[] = [];
  let held = 0;
  for (const { replica, slots } of reading.holders ?? []) {
    if (replica.startsWith(NO_REPLICA)) held += slots;
    else shares.push({ replica, name: names.get(replica) ?? null, inFlight: slots });
  }
  if (held > 0) shares.push({ ...PROGRAMS, inFlight: held });
  return shares.sort((a, b) => b.inFlight - a.inFlight);
}
