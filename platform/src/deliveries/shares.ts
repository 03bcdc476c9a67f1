/** A subscription with due deliveries. */
export interface WaitingSubscription {
  readonly id: string;
  /** The Account, Organization or Person that it belongs to. */
  readonly owner: string;
  /** The subscription is paused because its endpoint fails. It may attempt a single delivery. */
  readonly isProbe: boolean;
  /** No attempt has succeeded since the last failure. */
  readonly isFailing: boolean;
}

/** Deliveries under way, by subscription and by owner. */
export interface UnderWay {
  readonly total: number;
  /** How many began while no attempt of their subscription had succeeded since its last failure. */
  readonly ofFailing: number;
  of(id: string): number;
  /** How many a subscription may have: one at first, and more with each success. */
  windowOf(subscriptionId: string): number;
}

/** One subscription may use an eighth of the free slots, one owner half of them. */
const SUBSCRIPTION_PART = 8;
const OWNER_PART = 2;
/**
 * While more than a quarter of all slots is free, a subscription gets its first slot regardless of its owner. Afterwards a failing one
 * gets none.
 */
const FIRST_SLOT_PART = 4;
/** While failing subscriptions hold fewer than an eighth of all slots, they get their first ones before the others. */
const FAILING_PART = 8;

/**
 * How many deliveries each subscription may start. Slots are given out one at a time, in turns.
 *
 * A subscription begins with one slot, and gets one more for each success (slow start), so an endpoint that does not answer holds one
 * slot and delays no other, of the same owner or of another. The maximum for one subscription depends on the free slots
 * (dynamic thresholds, Choudhury and Hahne 1998): one whose endpoint stops answering holds at most a ninth of all slots. The limit for
 * an owner covers owners with many such subscriptions. Its other endpoints still get one delivery at a time while a quarter of
 * all slots is free. The last quarter is for endpoints that have not failed, so thousands of owners whose endpoints do not answer
 * delay nobody else. An eighth of all slots goes to failing subscriptions first. Otherwise healthy ones that hold more than three quarters
 * would keep them from the attempt that shows that they have recovered.
 */
export function shareSlots(
  waiting: readonly WaitingSubscription[],
  underWay: UnderWay,
  concurrency: number,
): Map<string, number> {
  const slots = new Map<string, number>();
  const ofOwner = new Map<string, number>();
  let free = concurrency - underWay.total;
  const give = ({ id, owner }: WaitingSubscription) => {
    slots.set(id, (slots.get(id) ?? 0) + 1);
    ofOwner.set(owner, (ofOwner.get(owner) ?? 0) + 1);
    free--;
  };
  const reserved = Math.floor(concurrency / FAILING_PART) - underWay.ofFailing;
  const untried = waiting.filter(({ id, isFailing }) => isFailing && underWay.of(id) === 0);
  for (const one of untried.slice(0, Math.max(0, Math.min(free, reserved)))) give(one);
  const isBelowShare = ({ id, owner, isProbe, isFailing }: WaitingSubscription) => {
    const held = underWay.of(id) + (slots.get(id) ?? 0);
    const areFewFree = free <= concurrency / FIRST_SLOT_PART;
    if (areFewFree && isFailing) return false;
    if (!areFewFree && held === 0) return true;
    const heldByOwner = underWay.of(owner) + (ofOwner.get(owner) ?? 0);
    const part = Math.min(underWay.windowOf(id), Math.floor(free / SUBSCRIPTION_PART));
    const share = isProbe ? 1 : Math.max(1, part);
    return held < share && heldByOwner < Math.max(1, Math.floor(free / OWNER_PART));
  };
  let isAnyBelowShare = true;
  while (free > 0 && isAnyBelowShare) {
    isAnyBelowShare = false;
    for (const one of waiting) {
      if (free === 0 || !isBelowShare(one)) continue;
      give(one);
      isAnyBelowShare = true;
    }
  }
  return slots;
}
