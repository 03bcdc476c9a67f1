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
  | 'what is put back is of the present period'
  | 'a replica that was left out has counts put back again'
  | 'a replica that comes to another server has counts put back there'
  | 'a starting replica compares the server with the last recovery'
  | 'during a recovery, an owner counts only where it was put back'
  | 'all replicas write before an owner is put back'
  | 'an owner that was put back counts for one recovery'
  | 'an owner counts after it was put back'
  | 'what was read before an owner was put back is not put back after it'
  | 'an owner counts after all that was sent before'
  | 'a recovery ends after every owner that it puts back first'
  | 'counts are put back only by the recovery that has the mark'
  | 'a replica looks at the mark again before it writes'
  | 'a replica that goes on without the journal ends the recovery that has the mark';

/** Adds steps that change a copy of the state. */
export type Add = (name: string, change: (next: Counts) => void) => void;

export type Has = (part: Part) => boolean;

export const replicaOf = (counts: Counts, index: number): Replica => counts.replicas[index] as Replica;
export const serverOf = (counts: Counts, index: number): Server =>
  counts.servers[replicaOf(counts, index).at];

/** Whether charges are counted. */
export function isCounting(server: Server, has: Has): boolean {
  return isRight(server, has) || isBack(server, has);
}

/** Whether the bucket was put back by the recovery that has taken the mark. */
function isBack({ mark, back, id }: Server, has: Has): boolean {
  if (mark < 100 || mark % 100 !== id) return false;
  if (!has('during a recovery, an owner counts only where it was put back')) return true;
  return has('an owner that was put back counts for one recovery') ? back === mark : back > 0;
}

export function isRight({ mark, id }: Server, has: Has): boolean {
  return has('the mark names its server') ? mark === id : mark > 0 && mark < 100;
}
