/** What goes wrong, each as often as `Counts.left` allows, and what is no fault: a copy to the other server, and a new connection. */
import { type Counts, copy, type Faults, less, newReplica, plus, type Server } from './counts.ts';
import type { Step } from './explore.ts';
import type { Part } from './parts.ts';
import { isInDoubt } from './recovery-steps.ts';

const NOWHERE = -1;

export function faultSteps(counts: Counts, without: Part | undefined): Step<Counts>[] {
  const steps: Step<Counts>[] = [];
  const add = (name: string, fault: keyof Faults | undefined, change: (next: Counts) => void) => {
    if (fault !== undefined && counts.left[fault] === 0) return;
    const next = copy(counts);
    if (fault !== undefined) next.left = less(next.left, fault);
    change(next);
    steps.push({ name, next });
  };
  const { primary, servers } = counts;
  const other = primary === 0 ? 1 : 0;
  add('Redis is emptied', 'empties', (next) => void Object.assign(next.servers[primary], NOTHING));
  add('Redis is restarted, and is empty', 'empties', (next) => restart(next, primary, NOTHING));
  add('Redis is restarted with earlier data', 'snapshots', (next) => restart(next, primary, servers[other]));
  add('the other server becomes the primary', 'failovers', (next) => promote(next, other));
  if (counts.period === 0)
    add('the period ends', 'periods', (next) => {
      next.period = 1;
    });
  const isUsed = counts.replicas.some(({ isAlive, at }) => isAlive && at === other);
  if (!isUsed && (counts.left.failovers > 0 || counts.left.snapshots > 0)) {
    const { mark, back, points, period, settled } = servers[primary];
    add(
      'the other server gets a copy',
      undefined,
      (next) =>
        void Object.assign(next.servers[other], { mark, back, points, period, settled, isMaster: false }),
    );
  }
  add('a replica starts', 'starts', (next) => {
    next.replicas.push({ ...newReplica(primary, servers[primary].id), startedAt: next.asked });
    next.written.push(0);
  });
  for (const [index, { isAlive, isConnected, at, unanswered, settling }] of counts.replicas.entries()) {
    if (!isAlive) continue;
    add(`${index}: die`, 'deaths', (next) => die(next, index));
    if (isIdle(counts, index))
      add(`${index}: stop, and start anew`, 'restarts', (next) => {
        next.replicas[index] = { ...newReplica(primary, servers[primary].id), startedAt: next.asked };
        next.written[index] = 0;
      });
    if (unanswered !== -1 || settling === 'sent')
      add(`${index}: the answer is lost`, 'lost', (next) => loseAnswer(next, index));
    if (isConnected && at !== primary)
      add(`${index}: lose the connection`, undefined, (next) => disconnect(next, index));
    if (!isConnected) add(`${index}: connect`, undefined, (next) => connect(next, index, without));
  }
  return steps;
}

const NOTHING = { mark: 0, back: 0, points: 0, period: 0 as const, settled: 0 };

function restart(
  next: Counts,
  primary: 0 | 1,
  { mark, back, points, period, settled }: Omit<Server, 'id' | 'isMaster'>,
): void {
  Object.assign(next.servers[primary], { mark, back, points, period, settled, id: ++next.newestId });
  for (const [index, { at, isAlive }] of next.replicas.entries())
    if (isAlive && at === primary) disconnect(next, index);
}

function loseAnswer(next: Counts, index: number): void {
  const replica = next.replicas[index];
  // PendingSettlements.#failed
  if (replica?.settling === 'sent') replica.settling = 'unanswered';
  if (replica === undefined || replica.unanswered === -1) return;
  next.unknown = plus(next.unknown, replica.unanswered, 1);
  replica.unanswered = -1;
}

/** A server that was no copy since it was the primary has kept its id: nobody told it of the other one. */
function promote(next: Counts, to: 0 | 1): void {
  next.primary = to;
  const server = next.servers[to];
  if (!server.isMaster) Object.assign(server, { isMaster: true, id: ++next.newestId });
}

/** Marks.lost, Standing.left */
function disconnect(next: Counts, index: number): void {
  loseAnswer(next, index);
  const replica = next.replicas[index];
  if (replica === undefined) return;
  if (isInDoubt(replica) || replica.isBehind) replica.inLineWith = NOWHERE;
  replica.isConnected = false;
}

/** Marks.ready, Standing.arrived */
function connect(next: Counts, index: number, without: Part | undefined): void {
  const replica = next.replicas[index];
  if (replica === undefined) return;
  const { id } = next.servers[next.primary];
  if (without === 'a replica that comes to another server has counts put back there') replica.inLineWith = id;
  Object.assign(replica, { at: next.primary, server: id, isConnected: true, astray: [0, 0] });
}

/** Whether it has written everything. */
function isIdle({ replicas }: Counts, index: number): boolean {
  const { unanswered, settling, pending, batch, late, leading } = replicas[index] ?? newReplica(0, 0);
  return (
    unanswered === -1 &&
    settling === 'none' &&
    pending[0] + pending[1] === 0 &&
    batch === undefined &&
    late === undefined &&
    leading === 'no'
  );
}

function die(next: Counts, index: number): void {
  loseAnswer(next, index);
  const replica = next.replicas[index];
  if (replica === undefined) return;
  const { pending, batch, leading, astray, isKnown, flushed, settling } = replica;
  // Redis may have added its point, and nobody knows.
  if (settling !== 'none') next.unknown = plus(next.unknown, next.period, 1);
  // Nobody else knows what has to be put back.
  const isLeftOut = !isKnown || flushed < next.reading || isInDoubt(replica);
  const isWritten = batch === undefined || (next.written[index] ?? 0) >= batch.sequence;
  for (const period of [0, 1] as const)
    next.died = plus(
      next.died,
      period,
      isLeftOut
        ? next.admitted[period] + next.added[period]
        : Math.max(astray[period], pending[period] + (isWritten ? 0 : (batch?.points[period] ?? 0))),
    );
  if (leading !== 'no' && next.lock === index) next.lock = -1;
  next.replicas[index] = { ...newReplica(0, 0), isAlive: false };
}
