import { setImmediate } from 'node:timers/promises';
import { Type } from 'typebox';
import { amount, matching, plainText } from '../../facts/message-bounds.ts';
import { payingAccess } from '../../stages/request-context.ts';
import type { UsageBatch, UsageSum } from './batch.ts';
import type { Counts } from './counts.ts';
import { type Extract, extract, extractOf, type Rankings, rankingsOf, type Talker } from './extract.ts';
import { History } from './history.ts';
import { SERIES_SLICES, WINDOWS, type Window } from './windows.ts';

/** The scopes whose owners are ranked, and their names in a document. */
const RANKED = ['accounts', 'organizations'] as const;

export type RankedScope = (typeof RANKED)[number];

/** What one replica publishes. */
export type Summary = Readonly<Record<Window, Readonly<Record<RankedScope, Extract>>>> & {
  /** The Organizations of the Accounts. */
  readonly organizationOf: Readonly<Record<string, string>>;
  /** The last ten minutes of the first owners of each ranking. */
  readonly trends: Readonly<Record<RankedScope, Trends>>;
};

/** What a ranking of one window is made of. A replica of an earlier version publishes neither Organizations nor trends. */
export type WindowSummary = Summary[Window] & Partial<Omit<Summary, Window>>;

/** Per ten seconds, oldest first, by what is ranked and by owner; without the idle time before. */
type Trends = Readonly<Record<keyof Counts, Readonly<Record<string, readonly number[]>>>>;

/** Owners of each ranking and window whose trend is published. A console shows these first. */
const TRENDS = 10;

/** The rankings of some replicas. */
export interface Top extends Readonly<Record<RankedScope, Rankings>> {
  readonly window: Window;
  readonly replicas: number;
}

/** Ranks the Accounts and Organizations of this replica's requests, in bounded memory. */
export class Talkers {
  readonly #histories: Readonly<Record<RankedScope, History>> = {
    accounts: new History(),
    organizations: new History(),
  };

  readonly #batch: UsageBatch;

  constructor(batch: UsageBatch) {
    this.#batch = batch;
    batch.passTo((sum) => this.#add(sum));
  }

  /** What this replica publishes. Yields to requests between its parts: 1,000 owners take 3 ms altogether. */
  async summary(nowMs: number): Promise<Summary> {
    this.#batch.flush();
    const organizationOf: Record<string, string> = {};
    const part = async (ranked: RankedScope, window: Window) => {
      await setImmediate();
      const sketch = this.#histories[ranked].sum(window, nowMs);
      const extracted = extractOf(sketch);
      for (const [owner] of extracted.rows) {
        const organization = sketch.owners.get(owner)?.organization;
        if (organization !== undefined) organizationOf[owner] = organization;
      }
      return extracted;
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
    const trends = {
      accounts: await this.#trendsOf('accounts', windows, nowMs),
      organizations: await this.#trendsOf('organizations', windows, nowMs),
    };
    return { ...windows, organizationOf, trends };
  }

  async #trendsOf(ranked: RankedScope, windows: Pick<Summary, Window>, nowMs: number): Promise<Trends> {
    await setImmediate();
    const rankings = WINDOWS.map((window) => rankingsOf([windows[window][ranked]]));
    const trendsOf = (by: keyof Rankings, count: keyof Counts) => {
      const first = rankings.flatMap((ranking) => ranking[by].slice(0, TRENDS));
      return this.#histories[ranked].trendsOf(new Set(first.map(({ id }) => id)), count, nowMs);
    };
    return {
      points: trendsOf('byPoints', 'points'),
      requests: trendsOf('byRequests', 'requests'),
      refused: trendsOf('byRefused', 'refused'),
    };
  }

  /** Person-only and public requests are charged to no Account, and so not counted. */
  #add(sum: UsageSum): void {
    const { owner, payer, operation, secondMs, accounts } = sum;
    const { account, organization } = payer;
    if (payingAccess(operation) !== 'caller' || account === undefined) return;
    if (accounts === undefined) this.#histories.accounts.add(secondMs, owner, sum, organization);
    else if (organization !== undefined) this.#histories.organizations.add(secondMs, owner, sum);
  }
}

/** What another replica would read of one window. */
export function windowOf(summary: Summary, window: Window): WindowSummary {
  const { organizationOf, trends } = summary;
  return { ...summary[window], organizationOf, trends };
}

/** The rankings over all replicas. */
export function rank(summaries: readonly WindowSummary[], window: Window): Top {
  const rankings = (ranked: RankedScope): Rankings => {
    const { byPoints, byRequests, byRefused } = rankingsOf(summaries.map((summary) => summary[ranked]));
    const shown = (talkers: readonly Talker[], count: keyof Counts) =>
      talkers.map((talker) => ({
        ...talker,
        ...(ranked === 'accounts' && organizationOf(talker.id, summaries)),
        ...trendOf(talker.id, ranked, count, summaries),
      }));
    return {
      byPoints: shown(byPoints, 'points'),
      byRequests: shown(byRequests, 'requests'),
      byRefused: shown(byRefused, 'refused'),
    };
  };
  const [accounts, organizations] = [rankings('accounts'), rankings('organizations')];
  return { window, replicas: summaries.length, accounts, organizations };
}

function organizationOf(id: string, summaries: readonly WindowSummary[]) {
  const known = summaries.find(({ organizationOf: of = {} }) => Object.hasOwn(of, id));
  const organization = known?.organizationOf?.[id];
  return organization === undefined ? {} : { organization };
}

/** The sum of the trends that the replicas publish. Trends of two replicas begin up to ten seconds apart. */
function trendOf(id: string, ranked: RankedScope, count: keyof Counts, summaries: readonly WindowSummary[]) {
  const trends = summaries.flatMap(({ trends: of }) => {
    const known = of?.[ranked][count];
    return known !== undefined && Object.hasOwn(known, id) ? [known[id] ?? []] : [];
  });
  if (trends.length === 0) return {};
  const length = Math.max(...trends.map((trend) => trend.length));
  const at = (index: number) => trends.reduce((sum, trend) => sum + (trend.at(index - length) ?? 0), 0);
  return { trend: Array.from({ length }, (_, index) => at(index)) };
}

/** More than the windows have Accounts. */
const MOST_ACCOUNTS = 1_000;

const ofWindow = Type.Object({ accounts: extract, organizations: extract });

const ofOwners = Type.Record(plainText(256), Type.Array(amount, { maxItems: SERIES_SLICES }), {
  maxProperties: WINDOWS.length * TRENDS,
});

const trends = Type.Object({ points: ofOwners, requests: ofOwners, refused: ofOwners });

const asOwners = matching(ofWindow);

/** What a publication has beside its windows. */
export const readBesideWindows = matching(
  Type.Object({
    organizationOf: Type.Optional(
      Type.Record(plainText(256), plainText(256), { maxProperties: MOST_ACCOUNTS }),
    ),
    trends: Type.Optional(Type.Object({ accounts: trends, organizations: trends })),
  }),
);

/**
 * One window of what another replica published. Undefined if it has none that can be read, for example from another version of Weir.
 *
 * @param rest what the publication has beside its windows
 */
export function readWindow(
  published: unknown,
  window: Window,
  rest = readBesideWindows(published),
): WindowSummary | undefined {
  const owners = rest && asOwners((published as Readonly<Record<string, unknown>> | undefined)?.[window]);
  return owners && { ...owners, ...rest };
}
