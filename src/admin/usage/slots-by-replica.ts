import type { BucketReading } from '../../store/read-buckets.ts';

/** The slots of one bucket that the requests of one replica hold. */
export interface ReplicaSlots {
  readonly replica: string;
  /** Its host name; null if it has not reported. */
  readonly name: string | null;
  readonly inFlight: number;
}

/** Who holds the slots of a bucket, most first; null where the store did not answer. */
export function slotsByReplica(
  reading: BucketReading | undefined,
  names: ReadonlyMap<string, string>,
): readonly ReplicaSlots[] | null {
  if (reading === undefined) return null;
  return (reading.holders ?? [])
    .map(({ replica, slots }) => ({ replica, name: names.get(replica) ?? null, inFlight: slots }))
    .sort((a, b) => b.inFlight - a.inFlight);
}
