/**
 * A sliding log of points. A charge joins the newest entry if both are in the same 1/100 of the window and the entry
 * then holds at most 1/250 of the limit, or if both have the same time; otherwise it opens an entry. An entry expires
 * when its *last* charge is a window old, so no window ever holds more than the limit. Its earlier charges are kept too long;
 * that is the only inexactness, and it is less than 1/250 of the limit. There are at most 601 entries. This is the algorithm of
 * lua/charge.lua; lua/README.md states its guarantees.
 */
import type { BucketState, SettledState } from './store.ts';

const SLOTS_PER_WINDOW = 100;
/** An entry that charges of different times share holds at most this part of the limit. */
const ENTRIES_PER_LIMIT = 250;

/** That leaves at most this many entries, unless a limit is raised: then older ones are joined as the new limit allows. */
const MOST_ENTRIES = 601;

/** The most that a bucket holds, as in Redis, where a total has 32 bits. */
const MOST_POINTS = 4_000_000_000;

/** Numbers per entry: when its last charge was made, and its points. */
const ENTRY = 2;

export class CoalescedLog {
  /** Of its bucket: a sweep that got it from the map, with the log, would take 64 bytes of heap for each pair. */
  readonly key: string;
  #total = 0;
  /**
   * A ring of entries whose capacity is a power of two. It grows to what a window needs and is then kept: arrays that are
   * replaced regularly outlive the young generation, and collecting them causes pauses.
   */
  #ring = [0, 0];
  #oldest = 0;
  #count = 0;
  /** When the last entry expires; the log can be dropped after that. */
  #emptyFromUs = Number.NEGATIVE_INFINITY;

  constructor(key: string) {
    this.key = key;
  }

  copy(): CoalescedLog {
    const copy = new CoalescedLog(this.key);
    copy.#total = this.#total;
    copy.#ring = [...this.#ring];
    copy.#oldest = this.#oldest;
    copy.#count = this.#count;
    copy.#emptyFromUs = this.#emptyFromUs;
    return copy;
  }

  isEmptyAt(nowUs: number): boolean {
    return nowUs >= this.#emptyFromUs;
  }

  /** Drops expired entries. Call it before other methods, with the same `nowUs`. */
  advance(nowUs: number, windowUs: number): void {
    this.#rewind(nowUs, windowUs);
    // If the window is longer than at the last charge, what still counts stays for longer.
    if (this.#count > 0) this.#emptyFromUs = this.#atUs(this.#count - 1) + windowUs;
    const startUs = this.#bucketUs(nowUs) - windowUs;
    while (this.#count > 0 && this.#atUs(0) <= startUs) {
      this.#total -= this.#points(0);
      this.#oldest = (this.#oldest + 1) & (this.#ring.length / ENTRY - 1);
      this.#count -= 1;
    }
  }

  hasRoom(cost: number, limit: number): boolean {
    return this.#total + cost <= limit;
  }

  spend(cost: number, limit: number, nowUs: number, windowUs: number): void {
    const newest = this.#count - 1;
    const bucketUs = this.#bucketUs(nowUs);
    if (this.#canJoin(newest, cost, this.#total, limit, bucketUs, windowUs)) {
      this.#write(newest, bucketUs, this.#points(newest) + cost);
    } else {
      this.#push(bucketUs, cost);
      if (this.#count > MOST_ENTRIES) this.#joinOlder(limit, windowUs);
    }
    this.#total += cost;
    this.#emptyFromUs = bucketUs + windowUs;
  }

  /**
   * Points above the limit join no charge, because a later addition would move the entry, and no refund would find the charge. They open an
   * entry, which all further points in 1/100 of the window join while the bucket has no room.
   *
   * @param counted the points that count before
   */
  #canJoin(
    newest: number,
    points: number,
    counted: number,
    limit: number,
    nowUs: number,
    windowUs: number,
  ): boolean {
    if (newest < 0) return false;
    const atUs = this.#atUs(newest);
    if (counted > limit) return areNeighbours(atUs, nowUs, windowUs);
    if (atUs === nowUs && counted + points <= limit) return true;
    return canShare(atUs, nowUs, this.#points(newest) + points, limit, windowUs);
  }

  /**
   * Gives back `points` of a charge of `cost` points that still counts, from the entry that has them: the first one that is not earlier than
   * the charge. It is in the same 1/100 of the window, and later than the charge only if it was joined.
   */
  giveBack(
    points: number,
    cost: number,
    limit: number,
    chargedUs: number,
    nowUs: number,
    windowUs: number,
  ): void {
    // Its entry may be dropped, and the first one that is not earlier be another.
    if (chargedUs <= this.#bucketUs(nowUs) - windowUs) return;
    let index = 0;
    while (index < this.#count && this.#atUs(index) < chargedUs) index++;
    if (index === this.#count || this.#points(index) < cost) return;
    const atUs = this.#atUs(index);
    if (atUs > chargedUs && !canShare(chargedUs, atUs, cost, limit, windowUs)) return;
    this.#remove(index, points);
  }

  /** Gives points back whose time is unknown: the first ones that count, because all others count for longer. */
  giveBackOldest(points: number, nowUs: number, windowUs: number): void {
    const first = this.#firstCounted(nowUs, windowUs);
    let left = points;
    let end = first;
    for (; end < this.#count && this.#points(end) <= left; end++) left -= this.#points(end);
    this.#total -= points - left;
    this.#drop(first, end);
    if (left > 0 && first < this.#count) this.#remove(first, left);
  }

  /** Adds points as of now, above the limit if it must be. Returns how many are above it. */
  addOver(points: number, limit: number, nowUs: number, windowUs: number): number {
    const added = Math.min(points, MOST_POINTS - this.#total);
    if (added <= 0) return 0;
    const counted = this.#counted(nowUs, windowUs);
    const newest = this.#count - 1;
    const bucketUs = this.#bucketUs(nowUs);
    if (this.#canJoin(newest, added, counted, limit, bucketUs, windowUs)) {
      this.#write(newest, bucketUs, this.#points(newest) + added);
    } else {
      this.#push(bucketUs, added);
    }
    this.#total += added;
    this.#emptyFromUs = bucketUs + windowUs;
    return Math.max(0, Math.min(added, counted + added - limit));
  }

  /** The state of the bucket, which is not changed. */
  settledState(limit: number, overPoints: number, nowUs: number, windowUs: number): SettledState {
    const counted = this.#counted(nowUs, windowUs);
    const resetAfterUs = counted > 0 ? this.#atUs(this.#count - 1) + windowUs - nowUs : 0;
    return { remaining: Math.max(0, limit - counted), resetAfterUs, overPoints };
  }

  #firstCounted(nowUs: number, windowUs: number): number {
    const endUs = this.#bucketUs(nowUs) - windowUs;
    let index = 0;
    while (index < this.#count && this.#atUs(index) <= endUs) index++;
    return index;
  }

  #counted(nowUs: number, windowUs: number): number {
    let counted = this.#total;
    for (let index = this.#firstCounted(nowUs, windowUs) - 1; index >= 0; index--)
      counted -= this.#points(index);
    return counted;
  }

  /** An entry without points is removed. */
  #remove(index: number, points: number): void {
    this.#total -= points;
    this.#write(index, this.#atUs(index), this.#points(index) - points);
    if (this.#points(index) === 0) this.#drop(index, index + 1);
  }

  /** Drops the entries from `first` up to `end`, exclusive. */
  #drop(first: number, end: number): void {
    if (first === end) return;
    for (let next = end; next < this.#count; next++)
      this.#write(first + next - end, this.#atUs(next), this.#points(next));
    this.#count -= end - first;
  }

  /** Joins all entries but the newest as if they had been charged at this limit. */
  #joinOlder(limit: number, windowUs: number): void {
    let last = 0;
    for (let index = 1; index < this.#count; index++) {
      const [atUs, points] = [this.#atUs(index), this.#points(index)];
      const joined = this.#points(last) + points;
      const isNewest = index === this.#count - 1;
      if (!isNewest && canShare(this.#atUs(last), atUs, joined, limit, windowUs)) {
        this.#write(last, atUs, joined);
      } else {
        last += 1;
        this.#write(last, atUs, points);
      }
    }
    this.#count = last + 1;
  }

  /** `hadRoom` is the result of `hasRoom` before the charge was spent. */
  state(cost: number, limit: number, hadRoom: boolean, nowUs: number, windowUs: number): BucketState {
    return {
      remaining: Math.max(0, limit - this.#total),
      resetAfterUs: this.#count > 0 ? this.#atUs(this.#count - 1) + windowUs - nowUs : 0,
      retryAfterUs: hadRoom ? 0 : this.#retryAfterUs(cost, limit, nowUs, windowUs),
    };
  }

  /** A cost above the limit never fits; its wait is always one window. */
  #retryAfterUs(cost: number, limit: number, nowUs: number, windowUs: number): number {
    if (cost > limit) return windowUs;
    let excess = this.#total + cost - limit;
    let atUs = nowUs;
    for (let index = 0; excess > 0 && index < this.#count; index++) {
      excess -= this.#points(index);
      atUs = this.#atUs(index);
    }
    return atUs + windowUs - nowUs;
  }

  /** A clock that stepped back by at most a window is held at its last value until it catches up. */
  #bucketUs(nowUs: number): number {
    return this.#count === 0 ? nowUs : Math.max(nowUs, this.#atUs(this.#count - 1));
  }

  /**
   * The clock stepped back by more than a window: charges from the "future" count as made now, so they expire within a
   * window.
   */
  #rewind(nowUs: number, windowUs: number): void {
    if (this.#bucketUs(nowUs) <= nowUs + windowUs) return;
    let points = 0;
    while (this.#count > 0 && this.#atUs(this.#count - 1) > nowUs) {
      points += this.#points(this.#count - 1);
      this.#count -= 1;
    }
    if (points === 0) return;
    this.#push(nowUs, points);
    this.#emptyFromUs = nowUs + windowUs;
  }

  /** `index` is 0 for the oldest entry. */
  #atUs(index: number): number {
    return this.#ring[this.#placeOf(index)] ?? 0;
  }

  #points(index: number): number {
    return this.#ring[this.#placeOf(index) + 1] ?? 0;
  }

  #write(index: number, atUs: number, points: number): void {
    const place = this.#placeOf(index);
    this.#ring[place] = atUs;
    this.#ring[place + 1] = points;
  }

  #placeOf(index: number): number {
    const entries = this.#ring.length / ENTRY;
    return ((this.#oldest + index) & (entries - 1)) * ENTRY;
  }

  #push(atUs: number, points: number): void {
    if (this.#count * ENTRY === this.#ring.length) this.#grow();
    this.#count += 1;
    this.#write(this.#count - 1, atUs, points);
  }

  #grow(): void {
    const start = this.#oldest * ENTRY;
    const inOrder = [...this.#ring.slice(start), ...this.#ring.slice(0, start)];
    this.#ring = [...inOrder, ...inOrder.map(() => 0)];
    this.#oldest = 0;
  }
}

/** Whether charges of two times may share an entry of so many points. */
function canShare(atUs: number, laterUs: number, points: number, limit: number, windowUs: number): boolean {
  return areNeighbours(atUs, laterUs, windowUs) && points * ENTRIES_PER_LIMIT <= limit;
}

/** Whether both times are in the same 1/100 of the window. */
function areNeighbours(atUs: number, laterUs: number, windowUs: number): boolean {
  const slotUs = windowUs / SLOTS_PER_WINDOW;
  return Math.floor(atUs / slotUs) === Math.floor(laterUs / slotUs);
}
