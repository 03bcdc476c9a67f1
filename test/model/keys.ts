/** A state as text. The states of a level would be most of what a run keeps, and what V8 copies again and again. */
import type { Counts, Faults, Leading, Period, PerPeriod, Replica, Server, Sums } from './counts.ts';

const SETTLING: readonly Replica['settling'][] = ['none', 'sent', 'unanswered'];
const LEADING: readonly Leading[] = ['no', 'alone', 'begun', 'asked', 'waited', 'read', 'sent', 'put'];
const FIRST: readonly Replica['first'][] = ['no', 'read', 'sent', 'put', 'back'];

/** The numbers of a state, in one order. All are at least -1. */
const numbers = new Uint16Array(256);
const bytes = Buffer.from(numbers.buffer);
let count = 0;

/** The same text for the same states, and no others. */
export function keyOf(counts: Counts): string {
  count = 0;
  put(counts.replicas.length);
  for (const server of counts.servers) putServer(server);
  put(counts.primary);
  put(counts.newestId);
  put(counts.begun);
  put(counts.period);
  put(counts.asked);
  put(counts.reading);
  put(counts.askedServer);
  put(counts.lock);
  putPair(counts.rows);
  putPair(counts.admitted);
  putPair(counts.added);
  putPair(counts.unknown);
  putPair(counts.died);
  putFaults(counts.left);
  for (const replica of counts.replicas) putReplica(replica);
  for (const sequence of counts.written) put(sequence);
  return bytes.toString('latin1', 0, 2 * count);
}

/** The state of this text. It has the limit, and what else never changes, of the other one. */
export function stateOf(key: string, { limit, settles, asks }: Counts): Counts {
  bytes.write(key, 'latin1');
  count = 0;
  const replicas = take();
  return {
    limit,
    settles,
    asks,
    servers: [takeServer(), takeServer()],
    primary: take() as 0 | 1,
    newestId: take(),
    begun: take(),
    period: take() as Period,
    asked: take(),
    reading: take(),
    askedServer: take(),
    lock: take(),
    rows: takePair(),
    admitted: takePair(),
    added: takePair(),
    unknown: takePair(),
    died: takePair(),
    left: takeFaults(),
    replicas: Array.from({ length: replicas }, takeReplica),
    written: Array.from({ length: replicas }, take),
  };
}

function put(number: number): void {
  numbers[count++] = number + 1;
}

function take(): number {
  return (numbers[count++] as number) - 1;
}

function putIf(is: boolean): void {
  put(is ? 1 : 0);
}

function takeIf(): boolean {
  return take() === 1;
}

function putPair(pair: PerPeriod): void {
  put(pair[0]);
  put(pair[1]);
}

function takePair(): PerPeriod {
  return [take(), take()];
}

function putServer(server: Server): void {
  put(server.id);
  putIf(server.isMaster);
  put(server.mark);
  put(server.back);
  put(server.points);
  put(server.period);
  put(server.settled);
}

function takeServer(): Server {
  return {
    id: take(),
    isMaster: takeIf(),
    mark: take(),
    back: take(),
    points: take(),
    period: take() as Period,
    settled: take(),
  };
}

function putFaults(left: Readonly<Faults>): void {
  put(left.empties);
  put(left.snapshots);
  put(left.failovers);
  put(left.deaths);
  put(left.starts);
  put(left.restarts);
  put(left.lost);
  put(left.slow);
  put(left.locks);
  put(left.impatience);
  put(left.periods);
  put(left.settlements);
}

function takeFaults(): Faults {
  return {
    empties: take(),
    snapshots: take(),
    failovers: take(),
    deaths: take(),
    starts: take(),
    restarts: take(),
    lost: take(),
    slow: take(),
    locks: take(),
    impatience: take(),
    periods: take(),
    settlements: take(),
  };
}

function putReplica(replica: Replica): void {
  putIf(replica.isAlive);
  put(replica.at);
  put(replica.server);
  putIf(replica.isConnected);
  putIf(replica.insists);
  put(replica.unanswered);
  put(SETTLING.indexOf(replica.settling));
  putPair(replica.pending);
  putSums(replica.batch);
  putSums(replica.late);
  put(replica.sequence);
  put(replica.flushed);
  putIf(replica.isKnown);
  put(replica.flushingFor);
  putIf(replica.hadCounted);
  putIf(replica.hasCounted);
  put(replica.inLineWith);
  putIf(replica.isBehind);
  putIf(replica.isLeftOut);
  put(replica.startedAt);
  put(LEADING.indexOf(replica.leading));
  put(replica.leadsWith);
  put(replica.recovery);
  putPair(replica.sums);
  put(FIRST.indexOf(replica.first));
  putPair(replica.firstSums);
  putPair(replica.astray);
}

function takeReplica(): Replica {
  return {
    isAlive: takeIf(),
    at: take() as 0 | 1,
    server: take(),
    isConnected: takeIf(),
    insists: takeIf(),
    unanswered: take() as Period | -1,
    settling: SETTLING[take()] as Replica['settling'],
    pending: takePair(),
    batch: takeSums(),
    late: takeSums(),
    sequence: take(),
    flushed: take(),
    isKnown: takeIf(),
    flushingFor: take(),
    hadCounted: takeIf(),
    hasCounted: takeIf(),
    inLineWith: take(),
    isBehind: takeIf(),
    isLeftOut: takeIf(),
    startedAt: take(),
    leading: LEADING[take()] as Leading,
    leadsWith: take(),
    recovery: take(),
    sums: takePair(),
    first: FIRST[take()] as Replica['first'],
    firstSums: takePair(),
    astray: takePair(),
  };
}

/** No batch has the sequence 0. */
function putSums(sums: Sums | undefined): void {
  put(sums?.sequence ?? 0);
  put(sums?.points[0] ?? 0);
  put(sums?.points[1] ?? 0);
}

function takeSums(): Sums | undefined {
  const sums = { sequence: take(), points: takePair() };
  return sums.sequence === 0 ? undefined : sums;
}
