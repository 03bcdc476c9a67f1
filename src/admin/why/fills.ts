import { setImmediate } from 'node:timers/promises';
import { type Static, Type } from 'typebox';
import { isCharged, type LimitRow } from '../../domain/limits/rows.ts';
import { scopeNamed } from '../../domain/limits/scopes.ts';
import { plainText, timeMs } from '../../facts/message-bounds.ts';
import type { PastCharge, UsageBatch } from '../../observe/usage/batch.ts';
import { costIn } from '../../store/store.ts';

/** What had filled a bucket. */
export const question = Type.Object({
  processTag: Type.Integer({ minimum: 0, maximum: 0xffffff }),
  number: Type.Integer({ minimum: 0, maximum: 0xffffffff }),
  bucket: plainText(100),
  owner: plainText(256),
  /** Of its key: one principal has a bucket for each. */
  hashTag: plainText(256),
  /** When the request ended, which decides where its refusal is written. */
  atMs: timeMs,
  /** The window. Unix time by the clock of Redis. */
  fromMs: timeMs,
  toMs: timeMs,
});

export type Question = Static<typeof question>;

/** What one operation and one principal had spent. */
export interface SpentBy {
  readonly operation: string;
  readonly principal: string | null;
  points: number;
  requests: number;
}

/** Charges that are looked at before requests get their turn. */
const SLICE = 10_000;

/**
 * What this process had admitted in each window, most points first. One look through the charges answers all questions.
 *
 * @param aheadMs how far the clock of Redis is ahead of `performance.now()`
 */
export async function fillsOf(
  questions: readonly Question[],
  charges: UsageBatch['charges'],
  rows: readonly LimitRow[],
  aheadMs: number,
): Promise<ReadonlyMap<Question, readonly SpentBy[]>> {
  const asked = questions.map((one): Asked => {
    const row = rows.find(({ name }) => name === one.bucket);
    return { ...one, row, fromMs: one.fromMs - aheadMs, toMs: one.toMs - aheadMs, sum: new Map() };
  });
  await addAll(asked, charges);
  const ordered = asked.map(
    ({ sum }, index) =>
      [questions[index] as Question, [...sum.values()].sort((a, b) => b.points - a.points)] as const,
  );
  return new Map(ordered);
}

async function addAll(asked: readonly Asked[], charges: UsageBatch['charges']): Promise<void> {
  const byOwner = new Map<string, Asked[]>();
  for (const one of asked) byOwner.set(one.owner, [...(byOwner.get(one.owner) ?? []), one]);
  let looked = 0;
  for (const charge of charges.endedSince(Math.min(...asked.map(({ fromMs }) => fromMs)))) {
    const { account, organization, principal, address } = charge.payer;
    for (const owner of new Set([account, organization, principal?.id, address])) {
      for (const one of byOwner.get(owner ?? '') ?? []) add(charge, one);
    }
    looked += 1;
    if (looked % SLICE === 0) await setImmediate();
  }
}

interface Asked extends Question {
  /** Undefined for a limit that the files no longer have. */
  readonly row: LimitRow | undefined;
  readonly sum: Map<string, SpentBy>;
}

function add(charge: PastCharge, { row, owner, hashTag, fromMs, toMs, sum }: Asked): void {
  const { payer, operation, limits, askedMs, endedMs } = charge;
  if (
    row === undefined ||
    askedMs > toMs ||
    payer.hashTag !== hashTag ||
    scopeNamed(row.scope).ownerOf(payer) !== owner
  )
    return;
  // Of requests in progress, those that had not ended; of all others, those in the window.
  if (row.counts === 'concurrent' ? endedMs <= toMs : askedMs <= fromMs) return;
  if (!isCharged(row, operation) || limits?.includes(row.name) === false) return;
  const principal = payer.principal?.id ?? null;
  const key = `${operation.id}\n${principal}`;
  const spent = sum.get(key) ?? { operation: operation.id, principal, points: 0, requests: 0 };
  sum.set(key, spent);
  // What was settled later still counted as it was charged.
  const points = endedMs <= toMs ? charge.final : charge.charged;
  spent.points += points === 0 ? 0 : costIn(row, points);
  spent.requests += 1;
}
