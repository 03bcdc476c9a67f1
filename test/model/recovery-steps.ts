/** How replicas put back what Redis has lost. */
import {
  type Counts,
  less,
  type Period,
  type PerPeriod,
  pointsOf,
  type Replica,
  type Server,
} from './counts.ts';
import { takeBatch } from './journal-steps.ts';
import { type Add, type Has, isRight, replicaOf, serverOf } from './parts.ts';

/** Recovery.#attend, which Recovery.#attendAgain calls all the time. */
export function addAttendance(counts: Counts, index: number, has: Has, add: Add): void {
  const replica = replicaOf(counts, index);
  const { isKnown, insists, flushed, flushingFor, unanswered, settling, batch, pending } = replica;
  if (!insists) {
    // Also where Recovery.#recover finds nothing lost.
    add('look at the mark again', (next) => {
      replicaOf(next, index).insists = true;
    });
    if (has('a replica looks at the mark again before it writes')) return;
  }
  if (!isKnown) {
    if (unanswered !== -1 || settling === 'sent') return;
    add('attend for the first time', (next) => {
      const known = replicaOf(next, index);
      known.isKnown = true;
      known.flushed = next.reading;
      if (has('a starting replica compares the server with the last recovery'))
        known.inLineWith = next.askedServer;
      else known.inLineWith = known.server;
      const isLeftOut = next.reading > 0 && next.asked > known.startedAt && known.hasCounted;
      if (isLeftOut && has('a replica that was left out has counts put back again')) known.isLeftOut = true;
    });
    return;
  }
  const isAnswered =
    (unanswered === -1 && settling !== 'sent') || !has('answers are waited for before sums are written');
  if (flushingFor === 0 && counts.asked > flushed && batch === undefined && isAnswered)
    add('write what is counted, as a recovery asks', (next) => {
      const asked = replicaOf(next, index);
      asked.flushingFor = counts.asked;
      asked.hadCounted = replica.hasCounted;
      asked.hasCounted = false;
      asked.isBehind = asked.isConnected && asked.server !== counts.askedServer;
      if (!asked.isBehind) asked.inLineWith = counts.askedServer;
      if (pending[0] + pending[1] !== 0) takeBatch(asked);
    });
  if (flushingFor > 0 && batch === undefined)
    add('say that it is written', (next) => {
      const said = replicaOf(next, index);
      said.flushed = flushingFor;
      said.flushingFor = 0;
      if (counts.reading < flushingFor && counts.askedServer === said.server) said.isLeftOut = false;
      else if (counts.reading > flushed)
        said.isLeftOut ||= replica.hadCounted && has('a replica that was left out has counts put back again');
    });
}

/** Recovery.#goOn */
export function addImpatience(counts: Counts, index: number, has: Has, add: Add): void {
  const { isConnected, insists } = replicaOf(counts, index);
  const server = serverOf(counts, index);
  if (counts.left.impatience === 0 || !isConnected || !insists || isRight(server, has)) return;
  add('goes on without it', (next) => {
    next.left = less(next.left, 'impatience');
    replicaOf(next, index).insists = false;
    if (has('a replica that goes on without the journal ends the recovery that has the mark'))
      serverOf(next, index).mark = 100 * ++next.begun + server.id;
  });
}

/** Standing.isInDoubt */
export function isInDoubt({ isLeftOut, isConnected, inLineWith, server }: Replica): boolean {
  return isLeftOut || (isConnected && inLineWith !== 0 && inLineWith !== server);
}

/** Recovery.#recover */
export function addRecovery(counts: Counts, index: number, has: Has, add: Add): void {
  const replica = replicaOf(counts, index);
  const server = serverOf(counts, index);
  const step = (name: string, leading: Replica['leading'], change: (next: Counts, leader: Replica) => void) =>
    add(name, (next) => {
      const leader = replicaOf(next, index);
      leader.leading = leading;
      change(next, leader);
    });
  const unlock = (next: Counts, leader: Replica) => {
    if (next.lock === index) next.lock = -1;
    Object.assign(leader, { recovery: 0, first: 'no', sums: [0, 0], firstSums: [0, 0] });
  };
  const fail = (name: string) => step(name, 'no', unlock);
  if (READ.includes(replica.leading) && counts.lock === index && counts.left.locks > 0)
    add('lose the lock, and do not know', (next) => {
      next.lock = -1;
      next.left = less(next.left, 'locks');
    });
  addFirst(counts, index, has, add);
  if (READ.includes(replica.leading) && server.id !== replica.leadsWith) {
    fail('lose the connection');
    return;
  }
  if (replica.first === 'sent' && !mayPut(counts, index, has))
    fail('find that another recovery has the mark of the owner');
  switch (replica.leading) {
    case 'no':
      // Recovery.want, JournaledCounts.isComplete, RecoveryTables.alone
      if ((!isRight(server, has) || isInDoubt(replica)) && counts.lock === -1)
        step('take the lock', 'alone', (next) => {
          next.lock = index;
        });
      break;
    case 'alone':
      // lua/mark.lua: begin, or take
      if (isRight(server, has) && !isInDoubt(replica)) fail('find nothing lost');
      else
        step('begin', 'begun', (next, leader) => {
          leader.recovery = ++next.begun;
          serverOf(next, index).mark = takenBy(leader, server);
          leader.leadsWith = server.id;
        });
      break;
    case 'begun':
      // ASK in statements.ts
      step('ask all to write', 'asked', (next) => {
        next.asked += 1;
        next.askedServer = replica.leadsWith;
      });
      break;
    case 'asked': {
      // RecoveryTables.flushAll
      const others = counts.replicas.filter(
        ({ isAlive, isKnown, flushed }) => isAlive && isKnown && flushed < counts.asked,
      );
      const start = (next: Counts) => {
        next.reading = next.asked;
      };
      if (others.length === 0 || !has('all replicas write before counts are read'))
        step('all have written', 'waited', start);
      else if (counts.left.slow > 0)
        step('wait no longer', 'waited', (next) => {
          next.left = less(next.left, 'slow');
          start(next);
        });
      break;
    }
    case 'waited':
      // RecoveryTables.present
      step('read', 'read', (next, leader) => {
        leader.sums = next.rows;
      });
      break;
    case 'read': {
      // PuttingBack.#putPages
      const isLeftOut =
        SENT.includes(replica.first) &&
        has('what was read before an owner was put back is not put back after it');
      if (isLeftOut) step('send what was read, without the owner', 'put', () => undefined);
      else step('send what was read', 'sent', () => undefined);
      break;
    }
    case 'sent':
      if (mayPut(counts, index, has))
        step('put back', 'put', (next) => putBack(serverOf(next, index), counts.period, replica.sums, has));
      else fail('find that another recovery has the mark');
      break;
    case 'put':
      // PuttingBack.all waits for the owners that come first.
      if (
        ON_THE_WAY.includes(replica.first) &&
        has('a recovery ends after every owner that it puts back first')
      )
        break;
      // lua/mark.lua: end
      if (hasMark(counts, index) || !has('the mark is taken for a recovery'))
        step('end', 'no', (next, leader) => {
          Object.assign(serverOf(next, index), { mark: server.id, back: 0 });
          unlock(next, leader);
        });
      else fail('find that Redis has lost something again');
  }
}

/** PuttingBack.#putFirst: the owners that ask are put back before the others. */
function addFirst(counts: Counts, index: number, has: Has, add: Add): void {
  const replica = replicaOf(counts, index);
  const server = serverOf(counts, index);
  const [mayRead, mayCount] = [
    has('all replicas write before an owner is put back') ? READING : ASKING,
    has('an owner counts after it was put back'),
  ];
  if (!mayRead.includes(replica.leading) || server.id !== replica.leadsWith) return;
  const step = (name: string, first: Replica['first'], change: (next: Counts, leader: Replica) => void) =>
    add(name, (next) => {
      const leader = replicaOf(next, index);
      leader.first = first;
      change(next, leader);
    });
  const count = (next: Counts) => {
    serverOf(next, index).back = takenBy(replica, server);
  };
  if (replica.first === 'no' && counts.asks)
    step('read the counts of an owner', 'read', (next, leader) => {
      leader.firstSums = next.rows;
      if (!mayCount) count(next);
    });
  if (replica.first === 'read') step('send the counts of the owner', 'sent', () => undefined);
  if (replica.first === 'sent' && mayPut(counts, index, has))
    step('put an owner back', 'put', (next) =>
      putBack(serverOf(next, index), counts.period, replica.firstSums, has),
    );
  const isAnswered = replica.leading !== 'sent' || !has('an owner counts after all that was sent before');
  if (replica.first === 'put' && isAnswered) step('let the owner count', 'back', count);
}

/** What the mark has while this replica's recovery has taken it. */
function takenBy({ recovery }: Replica, { id }: Server): number {
  return 100 * recovery + id;
}

function hasMark(counts: Counts, index: number): boolean {
  const server = serverOf(counts, index);
  return server.mark === takenBy(replicaOf(counts, index), server);
}

/** lua/put-back.lua looks whose mark it is. */
function mayPut(counts: Counts, index: number, has: Has): boolean {
  const isOwn = Math.floor(serverOf(counts, index).mark / 100) === replicaOf(counts, index).recovery;
  return isOwn || !has('counts are put back only by the recovery that has the mark');
}

const ON_THE_WAY: readonly Replica['first'][] = ['read', 'sent', 'put'];
const SENT: readonly Replica['first'][] = ['sent', 'put', 'back'];
const READ: readonly Replica['leading'][] = ['read', 'sent', 'put'];
const READING: readonly Replica['leading'][] = ['waited', ...READ];
const ASKING: readonly Replica['leading'][] = ['begun', 'asked', ...READING];

/** lua/put-back.lua: what was read counts in the period in which it was charged. No bucket gets fewer points than it has. */
function putBack(server: Server, period: Period, read: PerPeriod, has: Has): void {
  const sums = has('what is put back is of the present period') ? read[period] : read[0] + read[1];
  if (sums > 0) [server.points, server.period] = [Math.max(pointsOf(server, period), sums), period];
}
