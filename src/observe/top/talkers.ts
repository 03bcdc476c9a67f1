import { setImmediate } from 'node:timers/promises';
import { Type } from 'typebox';
import { matching, plainText } from '../../shared/bounds.ts';
import { Generations } from '../../store/generations.ts';
import type { Spending, UsageBatch } from '../usage/batch.ts';
import type { Window } from '../usage/windows.ts';
import { type Extract, extract, extractOf, type Rankings, rankingsOf, type Talker } from './extract.ts';
import { History } from './history.ts';

/** The scopes whose owners are ranked, and their names in a document. */
export const RANKED = ['accounts', 'organizations'] as const;

export type Ranked = (typeof RANKED)[number];

/** What one replica publishes. */
export type Summary = Readonly<Record<Window, Readonly<Record<Ranked, Extract>>>> & {
  /** The Organizations of the Accounts. A replica of an earlier version does not publish it. */
  readonly organizationOf?: Readonly<Record<string, string>>;
};

/** Accounts in a generation whose Organization is remembered. */
const ACCOUNTS_PER_GENERATION = 2_000;

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

  readonly #organizations = new Generations<string>(ACCOUNTS_PER_GENERATION);
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
    const windows = {
      '10s': await ofWindow('10s'),
      '1m': await ofWindow('1m'),
      '10m': await ofWindow('10m'),
    };
    const accounts = Object.values(windows).flatMap((window) =>
      window.accounts.rows.map(([account]) => account),
    );
    const known = accounts.flatMap((account) => {
      const organization = this.#organizations.get(account);
      return organization === undefined ? [] : [[account, organization] as const];
    });
    return { ...windows, organizationOf: Object.fromEntries(known) };
  }

  /** Person-only and public requests are charged to no Account, and so not counted. */
  #add({ payer, operation, secondMs, ...counts }: Spending): void {
    if (operation.access !== 'caller' || payer.account === undefined) return;
    this.#histories.accounts.add(secondMs, payer.account, counts);
    const { account, organization } = payer;
    if (organization === undefined) return;
    const known = this.#organizations.renew(account, () => organization);
    if (known !== organization) this.#organizations.set(account, organization);
    if (!payer.hasOrganizationLimit) return;
    this.#histories.organizations.add(secondMs, organization, counts);
  }
}

/** The rankings over all replicas. */
export function rank(summaries: readonly Summary[], window: Window): Top {
  const { byPoints, byRequests, byRefused } = rankingsOf(
    summaries.map((summary) => summary[window].accounts),
  );
  const withOrganization = (talker: Talker): Talker => {
    const known = summaries.find(({ organizationOf = {} }) => Object.hasOwn(organizationOf, talker.id));
    const organization = known?.organizationOf?.[talker.id];
    return organization === undefined ? talker : { ...talker, organization };
  };
  const accounts = {
    byPoints: byPoints.map(withOrganization),
    byRequests: byRequests.map(withOrganization),
    byRefused: byRefused.map(withOrganization),
  };
  const organizations = rankingsOf(summaries.map((summary) => summary[window].organizations));
  return { window, replicas: summaries.length, accounts, organizations };
}

/** More than the windows have Accounts. */
const MOST_ACCOUNTS = 1_000;

const ofWindow = Type.Object({ accounts: extract, organizations: extract });

/** What another replica published, as a summary; undefined where it is none, of another version of Weir, say. */
export const readSummary: (published: unknown) => Summary | undefined = matching(
  Type.Object({
    '10s': ofWindow,
    '1m': ofWindow,
    '10m': ofWindow,
    organizationOf: Type.Optional(
      Type.Record(plainText(256), plainText(256), { maxProperties: MOST_ACCOUNTS }),
    ),
  }),
);
