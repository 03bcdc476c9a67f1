/** The state of the model of charges, the journal, losses and recoveries: one bucket of a period, and each charge costs a point. */

export type Period = 0 | 1;
/** Points in each period. Copies of a state share them, so a change makes another pair. */
export type PerPeriod = readonly [number, number];

/** One Redis. */
export interface Server {
  /** Its replication id. A promotion or a restart gives it another one. */
  id: number;
  /** Whether it takes charges. It is a copy of the other server otherwise. */
  isMaster: boolean;
  /** 0 without a mark; an id; or 100 times the number of a recovery, and the id (lua/mark.lua). */
  mark: number;
  /** The mark of the recovery that has put the bucket back before its end; 0 if none has. */
  back: number;
  points: number;
  /** The period of the points. */
  period: Period;
  /** Whether it has applied the settlement that each replica sends: a bit for each. */
  settled: number;
}

/** A batch of the journal. */
export interface Sums {
  sequence: number;
  points: PerPeriod;
}

/** What a replica does as the one that puts counts back (src/store/journal/recovery.ts). */
export type Leading = 'no' | 'alone' | 'begun' | 'asked' | 'waited' | 'read' | 'sent' | 'put';

export interface Replica {
  isAlive: boolean;
  /** The index of the server that its charges go to, and the id that it found there. */
  at: 0 | 1;
  server: number;
  isConnected: boolean;
  /** Whether its charges and settlements look at the mark. */
  insists: boolean;
  /** The period of a charge that Redis has counted, and whose answer is on its way. */
  unanswered: Period | -1;
  /** A settlement of a point: none, one whose answer is on its way, or one that has to be sent again. */
  settling: 'none' | 'sent' | 'unanswered';
  /** Sums that are in no batch (src/store/journal/sums.ts). */
  pending: PerPeriod;
  batch: Sums | undefined;
  /** A copy of a batch that the network delays. */
  late: Sums | undefined;
  sequence: number;
  /** Whether the tables know this replica, and what it has written for recoveries. */
  flushed: number;
  isKnown: boolean;
  /** The recovery for which it is writing, and whether it had counted something since the one before. */
  flushingFor: number;
  hadCounted: boolean;
  hasCounted: boolean;
  /** The id of the Redis that has all that this replica has counted, except what it has counted there since; 0 if unknown. */
  inLineWith: number;
  isBehind: boolean;
  /** Whether a recovery did not wait for what it had counted. */
  isLeftOut: boolean;
  /** The number of the last recovery when it started. */
  startedAt: number;
  leading: Leading;
  leadsWith: number;
  /** The number of the recovery that it leads. */
  recovery: number;
  sums: PerPeriod;
  /** How far it has put back the bucket before the others, and what it has read for that. */
  first: 'no' | 'read' | 'sent' | 'put' | 'back';
  firstSums: PerPeriod;
  /** Not known to the program: what it has counted while two servers took charges. */
  astray: PerPeriod;
}

export interface Counts {
  /** Of the bucket, in a period. */
  readonly limit: number;
  /** What a charge costs on top in the end; -1 if it is given back. */
  readonly settles: 1 | -1;
  /** Whether owners ask to be put back before the others. */
  readonly asks: boolean;
  servers: [Server, Server];
  /** The server that new connections go to. */
  primary: 0 | 1;
  newestId: number;
  /** Recoveries that have begun. */
  begun: number;
  period: Period;
  replicas: Replica[];
  /** The tables in PostgreSQL. */
  rows: PerPeriod;
  written: number[];
  asked: number;
  /** The last recovery that has begun to read, and the server of the last that asked. */
  reading: number;
  askedServer: number;
  /** The replica that has the lock; -1 if none has. */
  lock: number;
  /** What may still go wrong. */
  left: Readonly<Faults>;
  /** Not known to any program: what was admitted, what was counted without an answer, and what died unwritten. */
  admitted: PerPeriod;
  /** What was added, or given back, by settlements that are answered. */
  added: PerPeriod;
  unknown: PerPeriod;
  died: PerPeriod;
}

/** How often each fault may happen. */
export interface Faults {
  /** Redis is emptied, with or without a restart. */
  empties: number;
  /** A restart with an earlier copy of the data. */
  snapshots: number;
  /** The other server becomes the primary. It has a copy of the data that may be old. */
  failovers: number;
  /** A replica dies. */
  deaths: number;
  /** A replica starts. */
  starts: number;
  /** A replica stops, writes everything, and another one starts. */
  restarts: number;
  /** An answer of Redis or PostgreSQL is lost, or a batch is delayed and sent again. */
  lost: number;
  /** One replica waits no longer for another. */
  slow: number;
  /** One replica has lost the lock and does not know. */
  locks: number;
  /** One replica waits no longer for PostgreSQL, and goes on with what Redis has. */
  impatience: number;
  periods: number;
  /** No fault: a charge costs one point more, or less, in the end. */
  settlements: number;
}

export const NO_FAULTS: Faults = {
  empties: 0,
  snapshots: 0,
  failovers: 0,
  deaths: 0,
  starts: 0,
  restarts: 0,
  lost: 0,
  slow: 0,
  locks: 0,
  impatience: 0,
  periods: 0,
  settlements: 0,
};

export function newReplica(at: 0 | 1, server: number): Replica {
  return {
    isAlive: true,
    at,
    server,
    isConnected: true,
    insists: true,
    unanswered: -1,
    settling: 'none',
    pending: [0, 0],
    batch: undefined,
    late: undefined,
    sequence: 0,
    flushed: 0,
    isKnown: false,
    flushingFor: 0,
    hadCounted: false,
    hasCounted: false,
    inLineWith: 0,
    isBehind: false,
    isLeftOut: false,
    startedAt: 0,
    leading: 'no',
    leadsWith: 0,
    recovery: 0,
    sums: [0, 0],
    first: 'no',
    firstSums: [0, 0],
    astray: [0, 0],
  };
}

/** Counts that are complete: a Redis with a mark, and a second one with a copy of it. */
export function initialCounts(
  replicas: number,
  limit: number,
  settles: 1 | -1,
  left: Readonly<Faults>,
): Counts {
  const known = { ...newReplica(0, 1), isKnown: true, inLineWith: 1 };
  return {
    limit,
    settles,
    asks: true,
    servers: [
      { id: 1, isMaster: true, mark: 1, back: 0, points: 0, period: 0, settled: 0 },
      { id: 2, isMaster: false, mark: 1, back: 0, points: 0, period: 0, settled: 0 },
    ],
    primary: 0,
    newestId: 2,
    begun: 0,
    period: 0,
    replicas: Array.from({ length: replicas }, () => ({ ...known })),
    rows: [0, 0],
    written: Array.from({ length: replicas }, () => 0),
    asked: 0,
    reading: 0,
    askedServer: 1,
    lock: -1,
    left,
    admitted: [0, 0],
    added: [0, 0],
    unknown: [0, 0],
    died: [0, 0],
  };
}

export function copy(counts: Counts): Counts {
  const { servers, replicas, written } = counts;
  return {
    ...counts,
    servers: [{ ...servers[0] }, { ...servers[1] }],
    replicas: replicas.map((replica) => ({ ...replica })),
    written: [...written],
  };
}

/** The pair with more points in a period. */
export function plus([first, second]: PerPeriod, period: Period, points: number): PerPeriod {
  return period === 0 ? [first + points, second] : [first, second + points];
}

/** What may still go wrong after a fault. */
export function less(left: Readonly<Faults>, fault: keyof Faults): Readonly<Faults> {
  return { ...left, [fault]: left[fault] - 1 };
}

/** The points that count in a period. */
export function pointsOf({ points, period }: Server, present: Period): number {
  return period === present ? points : 0;
}
