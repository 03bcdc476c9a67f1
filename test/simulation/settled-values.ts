/** What lua/settle.lua leaves in Redis, as a model: the entries of a bucket, and the points of a period. */

export interface Entry {
  readonly atUs: number;
  readonly points: number;
}

/** One settlement, as one bucket sees it. */
export interface Seen {
  readonly nowUs: number;
  /** 0 if it is unknown. */
  readonly chargedUs: number;
  readonly cost: number;
  readonly final: number;
  readonly limit: number;
}

export interface Left {
  /** Oldest first. */
  readonly entries: readonly Entry[];
  /** Of its key, in ms; undefined if the settlement leaves it as it was. */
  readonly lifeMs: number | undefined;
  readonly state: { readonly remaining: number; readonly resetAfterUs: number; readonly overPoints: number };
}

const MOST_POINTS = 4_000_000_000;
const sumOf = (entries: readonly Entry[]) => entries.reduce((sum, { points }) => sum + points, 0);

/** @param keptMs what the key has left to live */
export function settledEntries(before: readonly Entry[], windowUs: number, keptMs: number, seen: Seen): Left {
  const { nowUs, chargedUs, cost, final, limit } = seen;
  const newestUs = before.at(-1)?.atUs ?? 0;
  const endUs = Math.max(nowUs, newestUs) - windowUs;
  const isCounting = ({ atUs }: Entry) => atUs > endUs;
  const isUnknown = chargedUs === 0 && final <= cost;
  const settled = final > cost ? withMore : withoutCharge;
  const entries = isUnknown
    ? withoutFirst(before, isCounting, cost - final)
    : settled(before, windowUs, endUs, seen);
  const counted = sumOf(entries.filter(isCounting));
  const more = sumOf(entries) - sumOf(before);
  const newest = entries.at(-1);
  return {
    entries,
    lifeMs:
      more > 0 || entries.length !== before.length
        ? lifeOf(before, entries, windowUs, keptMs, seen)
        : undefined,
    state: {
      remaining: Math.max(0, limit - counted),
      resetAfterUs: newest !== undefined && counted > 0 ? newest.atUs + windowUs - nowUs : 0,
      overPoints: Math.max(0, Math.min(more, counted - limit)),
    },
  };
}

/** A key that is written whole lives until its newest entry has expired for half a window, and no shorter than before. */
function lifeOf(
  before: readonly Entry[],
  entries: readonly Entry[],
  windowUs: number,
  keptMs: number,
  { nowUs, chargedUs }: Seen,
): number {
  const [oldUs, newestUs] = [before, entries].map((all) => all.at(-1)?.atUs ?? 0) as [number, number];
  if (entries.length === 0) return 1;
  const lifeFrom = (atUs: number) => windowUs * 0.0015 + (atUs - nowUs) / 1_000;
  // Points of an unknown time are removed in two writes if the newest entry has some of them. The first one knows the old end.
  const isTwice = chargedUs === 0 && entries.length < before.length - (newestUs === oldUs ? 0 : 1);
  return Math.max(1, keptMs, lifeFrom(newestUs), isTwice ? lifeFrom(oldUs) : 0);
}

/** What is added counts from now on. */
function withMore(entries: readonly Entry[], windowUs: number, endUs: number, seen: Seen): readonly Entry[] {
  const { nowUs, limit } = seen;
  const points = Math.min(seen.final - seen.cost, MOST_POINTS - sumOf(entries));
  const newest = entries.at(-1);
  if (points <= 0) return entries;
  if (newest === undefined) return [{ atUs: nowUs, points }];
  const slotOf = (atUs: number) => Math.floor(atUs / (windowUs / 100));
  const counted = sumOf(entries.filter(({ atUs }) => atUs > endUs));
  const isSmall = (newest.points + points) * 250 <= limit;
  const isNow = newest.atUs >= nowUs;
  const isNear = isNow || slotOf(newest.atUs) === slotOf(nowUs);
  const isJoined = isNear && (counted > limit || isSmall || (isNow && counted + points <= limit));
  const last = { atUs: Math.max(newest.atUs, nowUs), points: points + (isJoined ? newest.points : 0) };
  return [...(isJoined ? entries.slice(0, -1) : entries), last];
}

/** What is given back was charged at a known time. */
function withoutCharge(
  entries: readonly Entry[],
  windowUs: number,
  endUs: number,
  { chargedUs, cost, final, limit }: Seen,
): readonly Entry[] {
  const slotOf = (atUs: number) => Math.floor(atUs / (windowUs / 100));
  const found = entries.find(({ atUs }) => atUs >= chargedUs);
  if (chargedUs <= endUs || found === undefined || found.points < cost) return entries;
  const isAnother = slotOf(found.atUs) !== slotOf(chargedUs) || cost * 250 > limit;
  if (found.atUs > chargedUs && isAnother) return entries;
  return entries.flatMap((entry) => {
    const points = entry === found ? entry.points - (cost - final) : entry.points;
    return points > 0 ? [{ ...entry, points }] : [];
  });
}

/** What is given back was charged first, of all that counts. */
function withoutFirst(
  entries: readonly Entry[],
  isCounting: (entry: Entry) => boolean,
  points: number,
): readonly Entry[] {
  let left = points;
  return entries.flatMap((entry) => {
    const taken = isCounting(entry) ? Math.min(left, entry.points) : 0;
    left -= taken;
    return taken < entry.points ? [{ ...entry, points: entry.points - taken }] : [];
  });
}

/**
 * A bucket as lua/README.md describes it.
 *
 * @param entries the newest first, then the others from the oldest on
 */
export function bytesOfEntries(entries: readonly Entry[], total = sumOf(entries)): Buffer {
  const bytes = Buffer.alloc(4 + 11 * entries.length);
  bytes.writeUInt32BE(total);
  for (const [index, { atUs, points }] of entries.entries()) {
    bytes.writeBigUInt64BE(BigInt(atUs) << 8n, 4 + 11 * index);
    bytes.writeUInt32BE(points, 11 + 11 * index);
  }
  return bytes;
}

/** The same, of entries that are all oldest first. Without entries, no bytes. */
export function bytesInOrder(entries: readonly Entry[]): Buffer {
  const newest = entries.at(-1);
  return newest === undefined ? Buffer.alloc(0) : bytesOfEntries([newest, ...entries.slice(0, -1)]);
}
