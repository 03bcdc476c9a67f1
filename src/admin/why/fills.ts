import { setImmediate } from 'node:timers/promises';
import { type Static, Type } from 'typebox';
import type { Payer } from '../../domain/caller.ts';
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
  const byName = new Map(rows.map((row) => [row.name, row]));
  const byOwner = new Map<string, Asked[]>();
  let firstMs = Number.POSITIVE_INFINITY;
  for (const of of questions) {
    const row = byName.get(of.bucket);
    if (row === undefined) continue;
    const asked = { of, row, fromMs: of.fromMs - aheadMs, toMs: of.toMs - aheadMs, sum: undefined };
    firstMs = Math.min(firstMs, asked.fromMs);
    const known = byOwner.get(of.owner);
    if (known === undefined) byOwner.set(of.owner, [asked]);
    else known.push(asked);
  }
  await addAll(byOwner, charges, firstMs);
  const sums = new Map<Question, readonly SpentBy[]>();
  for (const { of, sum } of [...byOwner.values()].flat()) {
    if (sum !== undefined) sums.set(of, sum.size === 1 ? [...sum.values()] : ordered(sum));
  }
  return sums;
}

/** Whose requests that were asked for by this time have ended since, by `performance.now()`. */
export function ownersEndedSince(charges: UsageBatch['charges'], atMs: number): ReadonlySet<string> {
  const owners = new Set<string>();
  for (let number = charges.count - 1; ; number--) {
    const charge = charges.at(number);
    if (charge === undefined || charge.endedMs < atMs) return owners;
    if (charge.askedMs > atMs) continue;
    const { account, organization, address } = charge.payer;
    for (const owner of [account, organization, charge.principal?.id, address])
      if (owner !== undefined) owners.add(owner);
  }
}

function ordered(sum: ReadonlyMap<string, SpentBy>): readonly SpentBy[] {
  return [...sum.values()].sort((a, b) => b.points - a.points);
}

async function addAll(
  byOwner: ReadonlyMap<string, readonly Asked[]>,
  charges: UsageBatch['charges'],
  firstMs: number,
): Promise<void> {
  if (byOwner.size === 0) return;
  for (let number = charges.count - 1, looked = 1; ; number--, looked++) {
    const charge = charges.at(number);
    if (charge === undefined || charge.endedMs < firstMs) return;
    const { account, organization, address } = charge.payer;
    const principal = charge.principal?.id;
    addTo(byOwner, account, charge);
    if (organization !== account) addTo(byOwner, organization, charge);
    if (principal !== account && principal !== organization) addTo(byOwner, principal, charge);
    addTo(byOwner, address, charge);
    if (looked % SLICE === 0) await setImmediate();
  }
}

function addTo(
  byOwner: ReadonlyMap<string, readonly Asked[]>,
  owner: string | undefined,
  charge: PastCharge,
): void {
  const asked = owner === undefined ? undefined : byOwner.get(owner);
  if (asked !== undefined) for (const one of asked) add(charge, one);
}

/** A question, in the time of `performance.now()`. */
interface Asked {
  readonly of: Question;
  /** The files may no longer have it, and then nothing is known. */
  readonly row: LimitRow;
  readonly fromMs: number;
  readonly toMs: number;
  sum: Map<string, SpentBy> | undefined;
}

function add(charge: PastCharge, asked: Asked): void {
  const { of, row, fromMs, toMs } = asked;
  const { operation, limits, askedMs, endedMs } = charge;
  if (askedMs > toMs || charge.payer.hashTag !== of.hashTag) return;
  if (scopeNamed(row.scope).ownerOf(payerOf(charge)) !== of.owner) return;
  // Of requests in progress, those that had not ended; of all others, those in the window.
  if (row.counts === 'concurrent' ? endedMs <= toMs : askedMs <= fromMs) return;
  if (!isCharged(row, operation) || limits?.includes(row.name) === false) return;
  const principal = charge.principal?.id ?? null;
  const key = `${operation.id}\n${principal}`;
  asked.sum ??= new Map();
  let spent = asked.sum.get(key);
  if (spent === undefined) {
    spent = { operation: operation.id, principal, points: 0, requests: 0 };
    asked.sum.set(key, spent);
  }
  // What was settled later still counted as it was charged.
  const points = endedMs <= toMs ? charge.final : charge.charged;
  spent.points += points === 0 ? 0 : costIn(row, points);
  spent.requests += 1;
}

function payerOf({ payer, principal }: PastCharge): Payer {
  return principal === payer.principal ? payer : ({ ...payer, principal } as Payer);
}
