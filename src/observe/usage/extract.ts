import { Type } from 'typebox';
import { amount, plainText } from '../../facts/message-bounds.ts';
import { type OwnerCounts, Sketch, weightOf } from './sketch.ts';

/** How many owners a ranking has. */
const RANKED_OWNERS = 50;

/** How many owners of each ranking a replica publishes. More than a ranking has, so that the sum over replicas is accurate. */
const PUBLISHED_OWNERS = 100;

/** Owners that a replica publishes at most, of all rankings. Other versions of Weir read no more. */
const MOST_ROWS = 200;

type ExtractRow = readonly [owner: string, points: number, requests: number, refused: number, error: number];

/** What a replica publishes of the owners that it has counted. */
export interface Extract {
  /** The most weight that an owner can have who is not in `rows`. */
  readonly floor: number;
  readonly rows: readonly ExtractRow[];
}

/** One place of a ranking. */
export interface Talker {
  readonly id: string;
  /** Overstated by at most `error`. */
  readonly points: number;
  readonly requests: number;
  readonly refused: number;
  readonly error: number;
  /** Of an Account that belongs to one. */
  readonly organization?: string;
  /**
   * What it is ranked by in each ten seconds of the last ten minutes, oldest first, without the ten that are being counted and the
   * idle time before; missing beyond the first owners of a replica.
   */
  readonly trend?: readonly number[];
}

export interface Rankings {
  /** Those with equal points by their requests: without the store, nobody has points. */
  readonly byPoints: readonly Talker[];
  readonly byRequests: readonly Talker[];
  readonly byRefused: readonly Talker[];
}

/** The owners of a sketch with the most points, requests and refusals. */
export function extractOf({ owners, floor }: Sketch): Extract {
  const all = [...owners];
  const rankings = (['points', 'requests', 'refused'] as const).map((count) =>
    all.toSorted(([, a], [, b]) => b[count] - a[count]).slice(0, PUBLISHED_OWNERS),
  );
  const kept = new Map<string, OwnerCounts>();
  // The first of each ranking, then the second. Owners that are in several rankings leave room for more.
  for (let place = 0; place < PUBLISHED_OWNERS && kept.size + rankings.length <= MOST_ROWS; place++) {
    for (const ranking of rankings) {
      const [owner, counts] = ranking[place] ?? [];
      if (owner !== undefined && counts !== undefined) kept.set(owner, counts);
    }
  }
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

/** The rankings of the owners in all extracts together. */
export function rankingsOf(extracts: readonly Extract[]): Rankings {
  const sum = new Sketch(Number.POSITIVE_INFINITY);
  for (const { floor, rows } of extracts) sum.merge({ floor, owners: new Map(rows.map(countsOf)) });
  const talkers = [...sum.owners].map(([id, { points, requests, refused, error }]) => ({
    id,
    points: points + error,
    requests,
    refused,
    error,
  }));
  const most = (count: 'points' | 'requests' | 'refused', some: readonly Talker[] = talkers) =>
    some
      .toSorted((a, b) => b[count] - a[count] || b.requests - a.requests || (a.id < b.id ? -1 : 1))
      .slice(0, RANKED_OWNERS);
  return {
    byPoints: most('points'),
    byRequests: most('requests'),
    byRefused: most(
      'refused',
      talkers.filter(({ refused }) => refused > 0),
    ),
  };
}

function countsOf([owner, points, requests, refused, error]: ExtractRow): [string, OwnerCounts] {
  return [owner, { points, requests, refused, error, organization: undefined }];
}

/** The bounds of an extract of another replica. */
export const extract = Type.Object({
  floor: amount,
  rows: Type.Array(Type.Tuple([plainText(256), amount, amount, amount, amount]), {
    maxItems: MOST_ROWS,
  }),
});
