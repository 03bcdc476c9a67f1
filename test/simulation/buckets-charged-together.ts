/**
 * Buckets that are charged together: an Organization and its Accounts. One differing decision of one bucket changes what all others
 * have to decide, so the counter may admit far less than exact logs would. It is as strict as ever.
 */
import { bucketKey } from '../../src/store/keys.ts';
import type { Charge } from '../../src/store/store.ts';
import type { ClockedStore } from '../store/conformance.ts';

export interface Limits {
  readonly organization: number;
  readonly account: number;
}

export const EXAMPLE: Limits = { organization: 500, account: 10 };
export const WINDOW_US = 1_000_000;
export const START_US = 1_790_000_000_000_000;
/** Turns in a window after the first two. Each one has an Account of its own, that had its last turn two windows ago. */
const TURNS = 48;

export interface Ask {
  readonly atUs: number;
  readonly account: string;
  readonly cost: number;
}

/**
 * In each turn an Account asks for 10 points just when others expire. Before its turn it asks for one point, which an exact
 * log of the Organization has no room for.
 */
export function arrivals(windows: number): Ask[] {
  const asks: Ask[] = [ask(0, 0, 'first', 1)];
  for (let one = 0; one < EXAMPLE.account; one++) asks.push(ask(0, 9000, 'second', 1));
  for (let turn = 1; turn <= TURNS; turn++) asks.push(ask(0, turnUs(turn), `0-${turn}`, 10));
  for (let window = 1; window < windows; window++) {
    // The first of these is the charge that the counter refuses, because the first point counts for 9 ms too long.
    asks.push(ask(window, 0, `${window % 2}-early`, 10), ask(window, 9000, `${window % 2}-late`, 10));
    for (let turn = 1; turn <= TURNS; turn++) {
      const account = `${window % 2}-${turn}`;
      asks.push(ask(window, turnUs(turn) - 1000, account, 1), ask(window, turnUs(turn), account, 10));
    }
  }
  return asks.sort((a, b) => a.atUs - b.atUs);
}

function turnUs(turn: number): number {
  return Math.floor((turn * WINDOW_US) / (TURNS + 2)) + 20_000;
}

function ask(window: number, offsetUs: number, account: string, cost: number): Ask {
  return { atUs: START_US + window * WINDOW_US + offsetUs, account, cost };
}

/** Which of them a store admits. */
export async function admittedBy(
  store: ClockedStore,
  prefix: string,
  limits: Limits,
  asks: readonly Ask[],
): Promise<boolean[]> {
  const windowSeconds = WINDOW_US / 1_000_000;
  const admitted: boolean[] = [];
  for (const { atUs, account, cost } of asks) {
    const charge: Charge = {
      buckets: [
        { key: bucketKey(prefix, 'org', 'account-read', account), limit: limits.account, windowSeconds },
        {
          key: bucketKey(prefix, 'org', 'organization-read', 'org'),
          limit: limits.organization,
          windowSeconds,
        },
      ],
      cost,
    };
    const { outcome } = await store.charge(charge, atUs);
    admitted.push(outcome === 'admitted');
  }
  return admitted;
}

/** The same for exact sliding logs. */
export function admittedExactly(limits: Limits, asks: readonly Ask[]): boolean[] {
  let counting: Ask[] = [];
  return asks.map((one) => {
    counting = counting.filter(({ atUs }) => atUs > one.atUs - WINDOW_US);
    const held = (some: readonly Ask[]) => some.reduce((sum, { cost }) => sum + cost, 0);
    const isRoomy =
      held(counting) + one.cost <= limits.organization &&
      held(counting.filter(({ account }) => account === one.account)) + one.cost <= limits.account;
    if (isRoomy) counting.push(one);
    return isRoomy;
  });
}
