import { Type } from 'typebox';
import { amount, plainText } from '../../shared/bounds.ts';
import { type OwnerCounts, Sketch, weightOf } from './sketch.ts';

/** How many owners a ranking has. */
const RANKED_OWNERS = 50;

/** How many owners of each ranking a replica publishes. More than a ranking has, so that the sum over replicas is accurate. */
const PUBLISHED_OWNERS = 100;

type Row = readonly [owner: string, points: number, requests: number, refused: number, error: number];

/** What a replica publishes of the owners that it has counted. */
export interface Extract {
  /** The most weight that an owner can have who is not in `rows`. */
  readonly floor: number;
  readonly rows: readonly Row[];
}

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

/** The owners of a sketch with the most points and refusals. */
export function extractOf({ owners, floor }: Sketch): Extract {
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
  const byPoints = talkers.toSorted((a, b) => b.points - a.points || (a.id < b.id ? -1 : 1));
  const byRefused = talkers
    .filter(({ refused }) => refused > 0)
    .sort((a, b) => b.refused - a.refused || (a.id < b.id ? -1 : 1));
  return { byPoints: byPoints.slice(0, RANKED_OWNERS), byRefused: byRefused.slice(0, RANKED_OWNERS) };
}

function countsOf([owner, points, requests, refused, error]: Row): [string, OwnerCounts] {
  return [owner, { points, requests, refused, error }];
}

/** The bounds of an extract of another replica. */
export const extract = Type.Object({
  floor: amount,
  rows: Type.Array(Type.Tuple([plainText(256), amount, amount, amount, amount]), {
    maxItems: 2 * PUBLISHED_OWNERS,
  }),
});
