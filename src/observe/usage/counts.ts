/** What requests came to. Sketches, windows and batches add it up, and none of them imports the others for it. */
export interface Counts {
  readonly points: number;
  readonly requests: number;
  readonly refused: number;
}

/** Counts that others are added to. */
export type Sum = { -readonly [Member in keyof Counts]: Counts[Member] };

export function newSum(): Sum {
  return { points: 0, requests: 0, refused: 0 };
}

export function addCounts(sum: Sum, { points, requests, refused }: Counts): void {
  sum.points += points;
  sum.requests += requests;
  sum.refused += refused;
}
