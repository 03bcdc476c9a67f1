/** How replicas put back what Redis has lost. */
import { type Counts, pointsOf, type Replica } from './counts.ts';
import { takeBatch } from './journal-steps.ts';
import { type Add, type Has, isRight, replicaOf, serverOf } from './parts.ts';

/** Recovery.#attend, which Recovery.#attendAgain calls all the time. */
export function addAttendance(counts: Counts, index: number, has: Has, add: Add): void {
  const replica = replicaOf(counts, index);
  const { isKnown, flushed, flushingFor, unanswered, settling, batch, pending } = replica;
  if (!isKnown) {
    if (unanswered !== -1 || settling === 'sent') return;
    add('attend for the first time', (next) => {
      const known = replicaOf(next, index);
      known.isKnown = true;
      known.flushed = next.reading;
      if (has('a starting replica compares the server with the last recovery'))
        known.inLineWith = next.askedServer;
      else known.inLineWith = known.server;
      const isLeftOut = next.reading >= next.asked && next.asked > known.startedAt && known.hasCounted;
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
      if (pending[0] + pending[1] > 0) takeBatch(asked);
    });
  if (flushingFor > 0 && batch === undefined)
    add('say that it is written', (next) => {
      const said = replicaOf(next, index);
      said.flushed = flushingFor;
      said.flushingFor = 0;
      if (counts.reading >= flushingFor)
        said.isLeftOut ||= replica.hadCounted && has('a replica that was left out has counts put back again');
      else if (counts.askedServer === said.server) said.isLeftOut = false;
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
  const taken = 100 * (index + 1) + server.id;
  const step = (name: string, leading: Replica['leading'], change: (next: Counts, leader: Replica) => void) =>
    add(name, (next) => {
      const leader = replicaOf(next, index);
      leader.leading = leading;
      change(next, leader);
    });
  const unlock = (next: Counts) => {
    if (next.lock === index) next.lock = -1;
  };
  const fail = (name: string) => step(name, 'no', unlock);
  if (
    (replica.leading === 'read' || replica.leading === 'put') &&
    counts.lock === index &&
    counts.left.slow > 0
  )
    add('lose the lock, and do not know', (next) => {
      next.lock = -1;
      next.left.slow -= 1;
    });
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
          serverOf(next, index).mark = taken;
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
      else if (counts.left.slow > 0 && replica.flushed >= counts.asked)
        step('wait no longer', 'waited', (next) => {
          next.left.slow -= 1;
          start(next);
        });
      break;
    }
    case 'waited':
      // RecoveryTables.present
      step('read', 'read', (next, leader) => {
        leader.sums = [...next.rows];
      });
      break;
    case 'read': {
      if (server.id !== replica.leadsWith) {
        fail('lose the connection');
        break;
      }
      const { period, sums } = putBackOf(counts, replica, has);
      step('put back', 'put', (next) => {
        const found = serverOf(next, index);
        const stored = pointsOf(found, counts.period);
        const wanted = has('a bucket gets no fewer points than it has') ? Math.max(stored, sums) : sums;
        if (sums > 0 || !has('a bucket gets no fewer points than it has'))
          [found.points, found.period] = [wanted, period];
      });
      break;
    }
    case 'put':
      // lua/mark.lua: end
      if (server.mark === taken || !has('the mark is taken for a recovery'))
        step('end', 'no', (next) => {
          serverOf(next, index).mark = server.id;
          unlock(next);
        });
      else fail('find that Redis has lost something again');
  }
}

/** lua/put-back.lua: what was read counts in the period in which it was charged. */
function putBackOf({ period }: Counts, { sums }: Replica, has: Has) {
  if (has('what is put back is of the present period')) return { period, sums: sums[period] };
  return { period, sums: sums[0] + sums[1] };
}
