/**
 * Charges that are settled later, in any order and sometimes twice, in one to four buckets of different windows. A model of its own keeps
 * every charge with what it costs by now.
 */
import { expect } from 'vitest';
import type { BucketCharge, Charge, Settlement } from '../../src/store/store.ts';
import type { ClockedStore } from '../store/conformance.ts';

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;
/** A store recognizes a settlement for longer. */
const MARKED_US = 60 * US_PER_SECOND;

/** No charge is settled. */
export const NEVER = Number.MAX_SAFE_INTEGER;

export interface Row {
  readonly windowSeconds: number;
  readonly limit: number;
}

export interface Step {
  /** Time that passes before, as a part of the shortest window. */
  readonly pause: number;
  /** How far the store's clock is set back before, as a part of the shortest window. */
  readonly back: number;
  readonly cost: number;
  /** Which of the charges that were made is settled after the charge, counted from the last one; none if there are fewer. */
  readonly settled: number;
  /** Its final cost, as a part of its cost. */
  readonly final: number;
  readonly isSentTwice: boolean;
  /** Points that are then given back without a charge; none if 0. */
  readonly refund: number;
}

interface Made {
  readonly settlement: Settlement;
  /** In real time. */
  readonly atUs: number;
  /** By row. */
  points: number[];
  /** In real time; undefined until it is settled. */
  settledUs?: number;
  /** Whether a settlement has added it. */
  readonly isAdded: boolean;
}

/** What is added above a limit may keep other added points for longer, by this part of the window. */
const KEPT_LONGER = 0.01;

/**
 * Plays a scenario. Limits below 500 make the counter an exact log, so every answer is known while no clock steps. What is added counts a little
 * longer, and a charge at the same time may not find its points again. A refund without a charge may take the points that a settlement names,
 * so a scenario has an exact answer with refunds or with settlements.
 */
export class SettledCosts {
  readonly #store: ClockedStore;
  readonly #rows: readonly Row[];
  readonly #buckets: readonly BucketCharge[];
  readonly #shortestUs: number;
  readonly #made: Made[] = [];
  #realUs = START_US;
  #offsetUs = 0;
  /** All that the store has answered. */
  readonly answers: unknown[] = [];

  constructor(store: ClockedStore, prefix: string, rows: readonly Row[]) {
    this.#store = store;
    this.#rows = rows;
    this.#buckets = rows.map((row, index) => ({ ...row, key: `${prefix}:1:{o}:row${index}:o` }));
    this.#shortestUs = US_PER_SECOND * Math.min(...rows.map(({ windowSeconds }) => windowSeconds));
  }

  async play(steps: readonly Step[]): Promise<void> {
    const isKnown =
      steps.every(({ refund }) => refund === 0) || steps.every(({ settled }) => settled === NEVER);
    const hasTimes = steps.every(({ pause }) => Math.floor(pause * this.#shortestUs) > 0);
    const isExact =
      isKnown &&
      this.#rows.every(({ limit }) => limit < 500) &&
      steps.every(({ back, final }) => back === 0 && (final <= 1 || hasTimes));
    for (const step of steps) {
      this.#realUs += Math.floor(step.pause * this.#shortestUs);
      this.#offsetUs -= Math.floor(step.back * this.#shortestUs);
      await this.#charge(step.cost, isExact, isKnown);
      for (let sent = 0; sent < (step.isSentTwice ? 2 : 1); sent++) await this.#settleOne(step);
      if (step.refund > 0) await this.#refund(step.refund);
    }
  }

  async #settleOne({ settled, final }: Step): Promise<void> {
    const one = this.#made.at(-1 - settled);
    if (one === undefined || this.#realUs > (one.settledUs ?? this.#realUs) + MARKED_US) return;
    await this.#settle(one, Math.round(final * one.settlement.charge.cost));
  }

  async #charge(cost: number, isExact: boolean, isKnown: boolean): Promise<void> {
    const charge: Charge = { buckets: this.#buckets, cost };
    const decision = await this.#store.charge(charge, this.#realUs + this.#offsetUs);
    this.answers.push(decision);
    const hasRoom = (longer: number) =>
      this.#rows.every((row, index) => this.#held(index, longer) + cost <= row.limit);
    if (isExact && hasRoom(KEPT_LONGER)) expect(decision.outcome).toBe('admitted');
    if (decision.outcome !== 'admitted') return;
    if (isKnown) expect(hasRoom(0), 'a charge was admitted above a limit').toBe(true);
    const { chargedAtUs } = decision;
    const id = `s-${this.answers.length}`;
    const settlement = { charge, chargedAtUs, cost: 0, refundsRequests: false, id };
    const points = this.#rows.map(() => cost);
    this.#made.push({ settlement, atUs: this.#realUs, points, isAdded: false });
  }

  /** What is saved counts as if it had not been charged; what is added counts from now on. */
  async #settle(one: Made, cost: number): Promise<void> {
    const answer = await this.#store.settle({ ...one.settlement, cost }, this.#realUs + this.#offsetUs);
    this.answers.push(answer);
    expect(answer.outcome).toBe(one.settledUs !== undefined ? 'already' : 'settled');
    if (one.settledUs !== undefined) return;
    one.settledUs = this.#realUs;
    const more = cost - one.settlement.charge.cost;
    if (more <= 0) one.points = one.points.map(() => cost);
    else
      this.#made.push({
        settlement: one.settlement,
        atUs: this.#realUs,
        points: this.#rows.map(() => more),
        settledUs: this.#realUs,
        isAdded: true,
      });
  }

  /** Takes the points that were charged first, of all that count. */
  async #refund(points: number): Promise<void> {
    const charge: Charge = { buckets: this.#buckets, cost: points };
    const id = `r-${this.answers.length}`;
    const settlement = { charge, chargedAtUs: undefined, cost: 0, refundsRequests: true, id };
    this.answers.push(await this.#store.settle(settlement, this.#realUs + this.#offsetUs));
    for (const index of this.#rows.keys()) {
      let left = points;
      for (const one of this.#counting(index, 0)) {
        const taken = Math.min(left, one.points[index] ?? 0);
        one.points[index] = (one.points[index] ?? 0) - taken;
        left -= taken;
      }
    }
  }

  /** @param longer how much longer added points count, as a part of the window */
  #counting(index: number, longer: number): readonly Made[] {
    const windowUs = (this.#rows[index]?.windowSeconds ?? 0) * US_PER_SECOND;
    return this.#made.filter(
      ({ atUs, isAdded }) => atUs > this.#realUs - windowUs * (isAdded ? 1 + longer : 1),
    );
  }

  #held(index: number, longer: number): number {
    return this.#counting(index, longer).reduce((sum, { points }) => sum + (points[index] ?? 0), 0);
  }
}
