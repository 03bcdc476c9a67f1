import type { Counts, Replica, Server } from './counts.ts';

/** A part of the protocol that a run of the model can leave out. */
export type Part =
  | 'charges look at the mark'
  | 'settlements look at the mark'
  | 'a settlement is applied once'
  | 'the mark names its server'
  | 'the mark is taken for a recovery'
  | 'all replicas write before counts are read'
  | 'answers are waited for before sums are written'
  | 'a batch is written once'
  | 'sums and sequence are written in one transaction'
  | 'a bucket gets no fewer points than it has'
  | 'what is put back is of the present period'
  | 'a replica that was left out has counts put back again'
  | 'a replica that comes to another server has counts put back there'
  | 'a starting replica compares the server with the last recovery';

/** Adds steps that change a copy of the state. */
export type Add = (name: string, change: (next: Counts) => void) => void;

export type Has = (part: Part) => boolean;

export const replicaOf = (counts: Counts, index: number): Replica => counts.replicas[index] as Replica;
export const serverOf = (counts: Counts, index: number): Server =>
  counts.servers[replicaOf(counts, index).at];

export function isRight({ mark, id }: Server, has: Has): boolean {
  return has('the mark names its server') ? mark === id : mark > 0 && mark < 100;
}
