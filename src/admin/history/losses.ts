import type { Losses } from '../fleet/snapshot.ts';
import { ofKind, type RecordedChange } from './change.ts';

/** The kind of the entry by which somebody says that they have seen what was lost. */
export const SEEN_KIND = 'losses.seen';

/** What is lost, by the kind of its entry, and the kind of the entry when it is back. */
const LOST = [
  { what: 'replica', lostKind: 'replica.lost', backKind: 'replica.back' },
  { what: 'store', lostKind: 'store.lost', backKind: 'store.back' },
] as const;

/** Most losses that are listed. */
const MOST_LISTED = 20;

/** Whether the record has when this was written: it may be written long after it happened. */
export function isLoss(kind: string): boolean {
  return LOST.some(({ lostKind }) => lostKind === kind);
}

/** @param changes newest first */
export function unseenLosses(changes: readonly RecordedChange[]): Losses {
  const seenMs = Math.max(0, ...ofKind(changes, SEEN_KIND).map(({ seenMs = 0 }) => seenMs));
  const unseen = LOST.flatMap(({ what, lostKind, backKind }) => {
    const backs = ofKind(changes, backKind);
    return ofKind(changes, lostKind)
      .filter((lost) => writtenAt(lost) > seenMs)
      .map((lost) => ({ lost, what, back: backs.findLast((back) => isReturn(back, lost)) }));
  }).sort((a, b) => b.lost.atMs - a.lost.atMs);
  return {
    latest: unseen.slice(0, MOST_LISTED).map(({ lost, what, back }) => ({
      what,
      replica: lost.replica ?? '',
      instance: lost.instance,
      atMs: lost.atMs,
      backAtMs: back?.atMs ?? null,
    })),
    count: unseen.length,
    untilMs: Math.max(0, ...unseen.map(({ lost }) => writtenAt(lost))),
  };
}

function writtenAt({ writtenMs, atMs }: RecordedChange): number {
  return writtenMs ?? atMs;
}

function isReturn(back: RecordedChange, lost: RecordedChange): boolean {
  return back.instance === lost.instance && back.atMs >= lost.atMs;
}
