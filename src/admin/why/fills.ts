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

export type FillQuestion = Static<typeof question> & {
  /** The end of the window by `performance.now()`, of a refusal of this process. */
  readonly askedMs?: number;
};

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
 * What this process had admitted in each window, most points first; undefined for nothing. One look through the charges answers all
 * questions.
 *
 * @param aheadMs how far the clock of Redis is ahead of `performance.now()`
 */
export async function fillsOf(
  questions: readonly FillQuestion[],
  charges: UsageBatch['charges'],
  rows: readonly LimitRow[],
  aheadMs: number,
): Promise<readonly (readonly SpentBy[] | undefined)[]> {
  if (questions.length === 0) return [];
  const byName = new Map(rows.map((row) => [row.name, row]));
  const byOwner = new Map<string, Asked>();
  let firstMs = Number.POSITIVE_INFINITY;
  const all = questions.map((of) => {
    const row = byName.get(of.bucket);
    if (row === undefined) return undefined;
    const asked = new Asked(of, row, aheadMs, byOwner.get(of.owner));
    if (asked.fromMs < firstMs) firstMs = asked.fromMs;
    byOwner.set(of.owner, asked);
    return asked;
  });
  await addAll(byOwner, charges, firstMs);
  return all.map((asked) => asked?.sums?.all);
}

/** Whose requests that were asked for by this time have ended since, by `performance.now()`. */
export function ownersEndedSince(charges: UsageBatch['charges'], atMs: number): ReadonlySet<string> {
  const owners = new Set<string>();
  for (const { payer, principal } of charges.inProgressAt(atMs)) {
    for (const owner of [payer.account, payer.organization, principal?.id, payer.address])
      if (owner !== undefined) owners.add(owner);
  }
  return owners;
}

async function addAll(
  byOwner: ReadonlyMap<string, Asked>,
  charges: UsageBatch['charges'],
  firstMs: number,
): Promise<void> {
  if (byOwner.size === 0) return;
  for (let number = charges.count - 1, looked = 1; number >= charges.oldest; number--, looked++) {
    if (charges.endedMsOf(number) < firstMs) return;
    addTo(byOwner, charges, number);
    if (looked % SLICE === 0) await setImmediate();
  }
}

/** Adds a charge to what is asked of any of its owners. Of most charges nothing is asked, so only few become objects. */
function addTo(byOwner: ReadonlyMap<string, Asked>, charges: UsageBatch['charges'], number: number): void {
  const { account, organization, address } = charges.payerOf(number) ?? {};
  const principal = charges.principalOf(number)?.id;
  add(charges, number, account === undefined ? undefined : byOwner.get(account));
  if (organization !== undefined && organization !== account) add(charges, number, byOwner.get(organization));
  if (principal !== undefined && principal !== account && principal !== organization)
    add(charges, number, byOwner.get(principal));
  if (address !== undefined) add(charges, number, byOwner.get(address));
}

function add(charges: UsageBatch['charges'], number: number, first: Asked | undefined): void {
  const charge = first && charges.at(number);
  if (charge === undefined) return;
  for (let one = first; one !== undefined; one = one.next) addOne(charge, one);
}

/** The times of a question that another replica asks are whole milliseconds, of a clock that is read in whole milliseconds. */
const ROUNDED_MS = 2;

/** A question, in the time of `performance.now()`. */
class Asked {
  readonly of: FillQuestion;
  readonly row: LimitRow;
  readonly fromMs: number;
  readonly toMs: number;
  readonly ownerOf: (payer: Payer) => string | undefined;
  /** Another question of the same owner. */
  readonly next: Asked | undefined;
  sums: Sums | undefined;

  constructor(of: FillQuestion, row: LimitRow, aheadMs: number, next: Asked | undefined) {
    this.of = of;
    this.row = row;
    this.fromMs = of.fromMs - aheadMs;
    this.toMs = of.askedMs ?? of.toMs - aheadMs + ROUNDED_MS;
    this.ownerOf = scopeNamed(row.scope).ownerOf;
    this.next = next;
    this.sums = undefined;
  }
}

/** What each operation and principal had spent. */
class Sums {
  readonly #first: SpentBy;
  /** Once there are several: most owners that a flood refuses have one. */
  #byKey: Map<string, SpentBy> | undefined;

  constructor(operation: string, principal: string | null) {
    this.#first = { operation, principal, points: 0, requests: 0 };
  }

  /** Most points first. */
  get all(): readonly SpentBy[] {
    return this.#byKey === undefined
      ? [this.#first]
      : [...this.#byKey.values()].sort((a, b) => b.points - a.points);
  }

  of(operation: string, principal: string | null): SpentBy {
    const first = this.#first;
    if (operation === first.operation && principal === first.principal) return first;
    this.#byKey ??= new Map([[keyOf(first.operation, first.principal), first]]);
    const key = keyOf(operation, principal);
    let spent = this.#byKey.get(key);
    if (spent === undefined) {
      spent = { operation, principal, points: 0, requests: 0 };
      this.#byKey.set(key, spent);
    }
    return spent;
  }
}

function keyOf(operation: string, principal: string | null): string {
  return `${operation}\n${principal}`;
}

function addOne(charge: PastCharge, asked: Asked): void {
  if (!hasFilled(charge, asked)) return;
  const { row, toMs } = asked;
  const { operation, endedMs, final, charged } = charge;
  const principal = charge.principal?.id ?? null;
  asked.sums ??= new Sums(operation.id, principal);
  const spent = asked.sums.of(operation.id, principal);
  // What was settled later still counted as it was charged.
  const points = endedMs <= toMs ? final : charged;
  spent.points += points === 0 ? 0 : costIn(row, points);
  spent.requests += 1;
}

function hasFilled(charge: PastCharge, { of, row, fromMs, toMs, ownerOf }: Asked): boolean {
  const { operation, limits, askedMs, endedMs, isRefunded } = charge;
  if (askedMs > toMs || charge.payer.hashTag !== of.hashTag) return false;
  if (ownerOf(payerOf(charge)) !== of.owner) return false;
  // Of requests in progress, those that had not ended; of all others, those in the window.
  if (row.counts === 'concurrent' ? endedMs <= toMs : askedMs <= fromMs) return false;
  if (row.counts === 'requests' && isRefunded && endedMs <= toMs) return false;
  return isCharged(row, operation) && limits?.includes(row.name) !== false;
}

function payerOf({ payer, principal }: PastCharge): Payer {
  return principal === payer.principal ? payer : ({ ...payer, principal } as Payer);
}
