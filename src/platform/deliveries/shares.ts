/** A subscription with deliveries that are due. */
export interface WaitingSubscription {
  readonly id: string;
  /** The Account, Organization or Person that it belongs to. */
  readonly owner: string;
  /** Paused because its endpoint failed: it may try a single delivery. */
  readonly isProbe: boolean;
}

/** Deliveries under way, by subscription and by owner. */
export interface UnderWay {
  readonly total: number;
  of(id: string): number;
}

/** A subscription takes at most this part of the slots that are free, its owner that one. */
const SUBSCRIPTION_PART = 8;
const OWNER_PART = 2;
/** While more than this part of all slots is free, a subscription has its first one whatever its owner holds. */
const FIRST_SLOT_PART = 4;

/**
 * How many deliveries each subscription may start, first come, first served in turns of one.
 *
 * What one may hold depends on what is still free (dynamic thresholds, Choudhury and Hahne 1998): alone it takes a
 * ninth of all slots, and the more slow endpoints there are the less each of them gets, so that slots remain for
 * everyone else. The owner's part is there for an owner with very many slow subscriptions; its other endpoints are
 * still served, one delivery at a time, while a quarter of all slots is free.
 */
export function shareSlots(
  waiting: readonly WaitingSubscription[],
  underWay: UnderWay,
  concurrency: number,
): Map<string, number> {
  const slots = new Map<string, number>();
  const ofOwner = new Map<string, number>();
  let free = concurrency - underWay.total;
  const isBelowShare = ({ id, owner, isProbe }: WaitingSubscription) => {
    const held = underWay.of(id) + (slots.get(id) ?? 0);
    if (held === 0 && free > concurrency / FIRST_SLOT_PART) return true;
    const heldByOwner = underWay.of(owner) + (ofOwner.get(owner) ?? 0);
    const share = isProbe ? 1 : Math.max(1, Math.floor(free / SUBSCRIPTION_PART));
    return held < share && heldByOwner < Math.max(1, Math.floor(free / OWNER_PART));
  };
  let isAnyBelowShare = true;
  while (free > 0 && isAnyBelowShare) {
    isAnyBelowShare = false;
    for (const one of waiting) {
      if (free === 0 || !isBelowShare(one)) continue;
      slots.set(one.id, (slots.get(one.id) ?? 0) + 1);
      ofOwner.set(one.owner, (ofOwner.get(one.owner) ?? 0) + 1);
      free--;
      isAnyBelowShare = true;
    }
  }
  return slots;
}
