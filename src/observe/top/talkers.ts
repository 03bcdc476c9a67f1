import { setImmediate } from 'node:timers/promises';
import { Type } from 'typebox';
import { matching } from '../../shared/bounds.ts';
import type { Spending, UsageBatch } from '../usage/batch.ts';
import type { Window } from '../usage/windows.ts';
import { type Extract, extract, extractOf, type Rankings, rankingsOf } from './extract.ts';
import { History } from './history.ts';

/** The scopes whose owners are ranked, and their names in a document. */
export const RANKED = ['accounts', 'organizations'] as const;

export type Ranked = (typeof RANKED)[number];

/** What one replica publishes. */
export type Summary = Readonly<Record<Window, Readonly<Record<Ranked, Extract>>>>;

/** The rankings of some replicas. */
export interface Top extends Readonly<Record<Ranked, Rankings>> {
  readonly window: Window;
  readonly replicas: number;
}

/** Ranks the Accounts and Organizations of this replica's requests, in bounded memory. */
export class Talkers {
  readonly #histories: Readonly<Record<Ranked, History>> = {
    accounts: new History(),
    organizations: new History(),
  };

  readonly #batch: UsageBatch;

  constructor(batch: UsageBatch) {
    this.#batch = batch;
    batch.passTo((spending) => this.#add(spending));
  }

  /** What this replica publishes. Yields to requests between its parts: 1,000 owners take 3 ms altogether. */
  async summary(nowMs: number): Promise<Summary> {
    this.#batch.flush();
    const part = async (ranked: Ranked, window: Window) => {
      await setImmediate();
      return extractOf(this.#histories[ranked].sum(window, nowMs));
    };
    const ofWindow = async (window: Window) => ({
      accounts: await part('accounts', window),
      organizations: await part('organizations', window),
    });
    return { '10s': await ofWindow('10s'), '1m': await ofWindow('1m'), '10m': await ofWindow('10m') };
  }

  /** Person-only and public requests are charged to no Account, and so not counted. */
  #add({ payer, operation, secondMs, ...counts }: Spending): void {
    if (operation.access !== 'caller' || payer.account === undefined) return;
    this.#histories.accounts.add(secondMs, payer.account, counts);
    if (payer.organization === undefined || !payer.hasOrganizationLimit) return;
    this.#histories.organizations.add(secondMs, payer.organization, counts);
  }
}

/** The rankings over all replicas. */
export function rank(summaries: readonly Summary[], window: Window): Top {
  const { accounts, organizations } = {
    accounts: rankingsOf(summaries.map((summary) => summary[window].accounts)),
    organizations: rankingsOf(summaries.map((summary) => summary[window].organizations)),
  };
  return { window, replicas: summaries.length, accounts, organizations };
}

const ofWindow = Type.Object({ accounts: extract, organizations: extract });

/** What another replica published, as a summary; undefined where it is none, of another version of Weir, say. */
export const readSummary: (published: unknown) => Summary | undefined = matching(
  Type.Object({ '10s': ofWindow, '1m': ofWindow, '10m': ofWindow }),
);
