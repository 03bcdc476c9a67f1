import { setImmediate } from 'node:timers/promises';
import { Type } from 'typebox';
import { amount, matching, plainText } from '../../shared/bounds.ts';
import type { Spending, UsageBatch } from '../usage/batch.ts';
import type { Window } from '../usage/windows.ts';
import { History } from './history.ts';
import { type OwnerCounts, Sketch, weightOf } from './sketch.ts';

/** The scopes whose owners are ranked, and their names in a document. */
export const RANKED = ['accounts', 'organizations'] as const;

export type Ranked = (typeof RANKED)[number];

/** How many owners a ranking has. */
const RANKED_OWNERS = 50;

/** How many owners of each ranking a replica publishes. More than a ranking has, so that the sum over replicas is accurate. */
const PUBLISHED_OWNERS = 100;

type Row = readonly [owner: string, points: number, requests: number, refused: number, error: number];

/** What a replica publishes of one scope and window. */
interface Extract {
  /** The most weight that an owner can have who is not in `rows`. */
  readonly floor: number;
  readonly rows: readonly Row[];
}

/** What one replica publishes. */
export type Summary = Readonly<Record<Window, Readonly<Record<Ranked, Extract>>>>;

/** One place of a ranking. */
export interface Talker {
  readonly id: string;
  /** Overstated by at most `error`. */
  readonly points: number;
  readonly requests: number;
  readonly refused: number;
  readonly error: number;
}

export interface Rankings {
  readonly byPoints: readonly Talker[];
  readonly byRefused: readonly Talker[];
}

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

function extractOf({ owners, floor }: Sketch): Extract {
  const all = [...owners];
  const kept = new Map([
    ...all.sort(([, a], [, b]) => b.points - a.points).slice(0, PUBLISHED_OWNERS),
    ...all.sort(([, a], [, b]) => b.refused - a.refused).slice(0, PUBLISHED_OWNERS),
  ]);
  const others = all.filter(([owner]) => !kept.has(owner)).map(([, counts]) => weightOf(counts));
  return {
    floor: others.reduce((most, weight) => Math.max(most, weight), floor),
    rows: [...kept].map(([owner, { points, requests, refused, error }]) => [
      owner,
      points,
      requests,
      refused,
      error,
    ]),
  };
}

/** The rankings over all replicas. */
export function rank(summaries: readonly Summary[], window: Window): Top {
  const { accounts, organizations } = {
    accounts: rankingsOf(summaries.map((summary) => summary[window].accounts)),
    organizations: rankingsOf(summaries.map((summary) => summary[window].organizations)),
  };
  return { window, replicas: summaries.length, accounts, organizations };
}

function rankingsOf(extracts: readonly Extract[]): Rankings {
  const sum = new Sketch(Number.POSITIVE_INFINITY);
  for (const { floor, rows } of extracts) sum.merge({ floor, owners: new Map(rows.map(countsOf)) });
  const talkers = [...sum.owners].map(([id, { points, requests, refused, error }]) => ({
    id,
    points: points + error,
    requests,
    refused,
    error,
  }));
  const byPoints = talkers.toSorted((a, b) => b.points - a.points || (a.id < b.id ? -1 : 1));
  const byRefused = talkers
    .filter(({ refused }) => refused > 0)
    .sort((a, b) => b.refused - a.refused || (a.id < b.id ? -1 : 1));
  return { byPoints: byPoints.slice(0, RANKED_OWNERS), byRefused: byRefused.slice(0, RANKED_OWNERS) };
}

function countsOf([owner, points, requests, refused, error]: Row): [string, OwnerCounts] {
  return [owner, { points, requests, refused, error }];
}

const extract = Type.Object({
  floor: amount,
  rows: Type.Array(Type.Tuple([plainText(256), amount, amount, amount, amount]), {
    maxItems: 2 * PUBLISHED_OWNERS,
  }),
});

const ofWindow = Type.Object({ accounts: extract, organizations: extract });

/** What another replica published, as a summary; undefined where it is none, of another version of Weir, say. */
export const readSummary: (published: unknown) => Summary | undefined = matching(
  Type.Object({ '10s': ofWindow, '1m': ofWindow, '10m': ofWindow }),
);
