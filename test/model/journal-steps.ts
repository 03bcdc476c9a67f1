/** How replicas count, and write what they have counted. */
import { type Counts, less, plus, pointsOf, type Replica, type Sums } from './counts.ts';
import { type Add, type Has, isCounting, replicaOf, serverOf } from './parts.ts';

export function addCharges(counts: Counts, index: number, has: Has, add: Add): void {
  const { period } = counts;
  const replica = replicaOf(counts, index);
  const server = serverOf(counts, index);
  // lua/charge.lua
  const mayCount = isCounting(server, has) || !replica.insists || !has('charges look at the mark');
  if (replica.isConnected && replica.unanswered === -1 && mayCount && pointsOf(server, period) < counts.limit)
    add('charge', (next) => {
      const charged = serverOf(next, index);
      charged.points = pointsOf(charged, period) + 1;
      charged.period = period;
      replicaOf(next, index).unanswered = period;
    });
  // recordAdmitted in src/store/journal/recording-store.ts, and Journal.add
  const { unanswered } = replica;
  if (unanswered !== -1)
    add('answer', (next) => {
      const answered = replicaOf(next, index);
      answered.unanswered = -1;
      answered.pending = plus(answered.pending, unanswered, 1);
      answered.hasCounted = true;
      const isSplit = next.replicas.some(
        ({ isAlive, isConnected, at }) => isAlive && isConnected && at !== answered.at,
      );
      if (isSplit || answered.at !== next.primary) answered.astray = plus(answered.astray, unanswered, 1);
      next.admitted = plus(next.admitted, unanswered, 1);
    });
}

/** What a charge costs on top, as PendingSettlements sends it until it is answered. */
export function addSettlements(counts: Counts, index: number, has: Has, add: Add): void {
  const { settling, isConnected, insists } = replicaOf(counts, index);
  const server = serverOf(counts, index);
  const bit = 1 << index;
  const isNew = settling === 'none' && counts.left.settlements > 0 && mayBeSettled(counts);
  // lua/settle.lua
  const mayApply = isCounting(server, has) || !insists || !has('settlements look at the mark');
  if (isConnected && mayApply && (isNew || settling === 'unanswered'))
    add(isNew ? 'settle' : 'settle once more', (next) => {
      if (isNew) next.left = less(next.left, 'settlements');
      const applied = serverOf(next, index);
      replicaOf(next, index).settling = 'sent';
      if ((applied.settled & bit) !== 0 && has('a settlement is applied once')) return;
      applied.settled |= bit;
      applied.points = Math.max(0, pointsOf(applied, next.period) + next.settles);
      applied.period = next.period;
    });
  // recordSettled in src/store/journal/recording-store.ts
  if (settling === 'sent')
    add('settled', (next) => {
      const settled = replicaOf(next, index);
      settled.settling = 'none';
      settled.pending = plus(settled.pending, next.period, next.settles);
      settled.hasCounted = true;
      next.added = plus(next.added, next.period, next.settles);
      // The next settlement has another id.
      for (const one of next.servers) one.settled &= ~bit;
    });
}

/** Whether a point that was charged in this period is not given back. */
function mayBeSettled({ admitted, added, replicas, period, settles }: Counts): boolean {
  const settling = replicas.filter((one) => one.settling !== 'none').length;
  return admitted[period] + (settles < 0 ? added[period] - settling : 0) > 0;
}

export function addWrites(counts: Counts, index: number, has: Has, add: Add): void {
  const { batch, late, pending } = replicaOf(counts, index);
  // Journal.#takeBatch
  if (batch === undefined && pending[0] + pending[1] !== 0)
    add('take a batch', (next) => takeBatch(replicaOf(next, index)));
  // WRITE in src/store/journal/statements.ts
  if (batch !== undefined) {
    add('write', (next) => {
      write(next, index, batch, has);
      replicaOf(next, index).batch = undefined;
    });
    if (counts.left.lost > 0) {
      add('write, and the answer is lost', (next) => {
        next.left = less(next.left, 'lost');
        write(next, index, batch, has);
      });
      if (late === undefined)
        add('send a batch that is delayed', (next) => {
          next.left = less(next.left, 'lost');
          replicaOf(next, index).late = batch;
        });
    }
    if (
      !has('sums and sequence are written in one transaction') &&
      (counts.written[index] ?? 0) < batch.sequence
    )
      add('write the sequence, and no sums', (next) => {
        next.written[index] = batch.sequence;
      });
  }
  if (late !== undefined)
    add('a delayed batch arrives', (next) => {
      write(next, index, late, has);
      replicaOf(next, index).late = undefined;
    });
}

export function takeBatch(replica: Replica): void {
  replica.batch = { sequence: ++replica.sequence, points: replica.pending };
  replica.pending = [0, 0];
}

function write(next: Counts, index: number, { sequence, points }: Sums, has: Has): void {
  if ((next.written[index] ?? 0) >= sequence && has('a batch is written once')) return;
  next.written[index] = Math.max(next.written[index] ?? 0, sequence);
  next.rows = [next.rows[0] + points[0], next.rows[1] + points[1]];
}
