import { sql } from 'kysely';
import { newId } from '../catalog/catalog.ts';
import type { Database } from '../database/schema.ts';
import { lockResource, type Resource, recordTransition } from '../events/transitions.ts';
import { invalid } from '../http/problems.ts';
import type { Jobs, NewJob } from '../jobs/queue.ts';
import type { Job } from '../jobs/runner.ts';
import { insertResource } from '../resources/resources.ts';
import type { OperationWork } from './run.ts';

export const SETTLEMENT_QUEUE = 'settlements';
export const PAYABLE_OPEN = 'Payable.Open';

/** A settlement that waits for a lock makes way for others, and is tried again. Shorter than the time after which it is assumed dead. */
const LOCK_TIMEOUT = '2s';

/** Throws a 422 if the payable is `Returned`, the only final state (contract section 3 rule 1). */
export function checkOpenable(payable: Resource): void {
  if (payable.status !== 'Returned') return;
  throw invalid('payableId', `names a payable that is ${payable.status}; create a new payable`);
}

/**
 * Opens a payable: starts the movement of funds, which a settlement job completes later. A payable that is already open
 * or paid is left unchanged, so opening it twice pays once. A partially paid one can be opened again. Nothing says how much
 * was paid, so the whole amount moves.
 */
export function openPayableWork(jobs: Jobs, settlementSeconds: number): OperationWork {
  const queueSettlement = (db: Database, data: NewJob['data'], now: Date) =>
    jobs.enqueue(db, SETTLEMENT_QUEUE, [
      { data, startAfter: new Date(now.getTime() + settlementSeconds * 1000) },
    ]);
  return async (db, operation, now) => {
    const payable = await lockResource(db, String(operation.input.payableId));
    checkOpenable(payable);
    if (payable.status === 'Open' || payable.status === 'Paid') {
      // An earlier version gave up its settlement after its last try. A second one finds it settled.
      const movement = payable.status === 'Open' ? await findMovement(db, payable) : undefined;
      if (movement) await queueSettlement(db, { payableId: payable.id, fundsMovementId: movement.id }, now);
      return { status: 'Completed', result: { payableId: payable.id, status: payable.status } };
    }
    const counterparty_account_id = await updateParty(db, payable);
    const opened = await recordTransition(db, payable, { part: 'Open', at: now });
    const movement = await insertResource(db, {
      id: newId('FundsMovement'),
      kind: 'FundsMovement',
      account_id: payable.account_id,
      counterparty_account_id,
      status: 'Created',
      external_id: payable.external_id,
      fields: { payableId: payable.id, amount: payable.fields.amount, currency: payable.fields.currency },
      at: now,
    });
    const created = await recordTransition(db, movement, { part: 'Created', at: now });
    await recordTransition(db, created, { part: 'Processing', at: now });
    const data = { payableId: payable.id, fundsMovementId: movement.id };
    await queueSettlement(db, data, now);
    return { status: 'Completed', result: { ...data, status: opened.status } };
  };
}

/** The Account of a payee, which is the other party of its payments. Null until one is associated. */
export function accountOfPayee({ fields }: Pick<Resource, 'fields'>): string | null {
  const { payeeAccountId } = fields;
  return typeof payeeAccountId === 'string' ? payeeAccountId : null;
}

/** The payee may have got an Account, or another one, since the payable and its invoice were created. */
async function updateParty(db: Database, payable: Resource): Promise<string | null> {
  const payee = await db
    .selectFrom('resources')
    .select('fields')
    .where('kind', '=', 'Payee')
    .where('id', '=', String(payable.fields.payeeId))
    // A triggered payable names an example, which another Account may own.
    .where('account_id', '=', payable.account_id)
    .executeTakeFirst();
  if (!payee) return payable.counterparty_account_id;
  const party = accountOfPayee(payee);
  const invoice = await findInvoice(db, payable);
  await db
    .updateTable('resources')
    .set({ counterparty_account_id: party })
    .where('id', 'in', invoice ? [payable.id, invoice.id] : [payable.id])
    .execute();
  return party;
}

/** The movement of funds that began when the payable was opened last. */
function findMovement(db: Database, { id, account_id, sequence, events }: Resource) {
  return (
    db
      .selectFrom('resources')
      .select('id')
      .where('kind', '=', 'FundsMovement')
      .where('account_id', '=', account_id)
      .where(sql`fields ->> 'payableId'`, '=', id)
      .where('created_at', '>=', sql<Date>`${events.openAt}::timestamptz`)
      // The index is read from the payable on, which is older.
      .where('sequence', '>', sequence)
      .orderBy('sequence')
      .limit(1)
      .executeTakeFirst()
  );
}

/** Ends the movement of funds. Marks the payable and its invoice as paid if the payable is open for this movement. */
export function settle(db: Database, now: () => Date, job: Job): Promise<void> {
  return db.transaction().execute(async (trx) => {
    await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(trx);
    const at = now();
    const payable = await lockResource(trx, job.data.payableId ?? '');
    const movement = await lockResource(trx, job.data.fundsMovementId ?? '');
    const isOpen = isOpenFor(payable, movement);
    // A triggered event may have ended the payable before.
    if (isOpen || movement.status === 'Processing') {
      const part = payable.status === 'Returned' ? 'Returned' : 'Completed';
      await recordTransition(trx, movement, { part, at });
    }
    if (!isOpen) return;
    await recordTransition(trx, payable, { part: 'Paid', at });
    const invoice = await findInvoice(trx, payable);
    if (invoice) await recordTransition(trx, invoice, { part: 'Paid', at });
  });
}

/** Whether the payable waits for this movement. It may have been opened again since, for another one. */
function isOpenFor({ status, events }: Resource, movement: Resource): boolean {
  return status === 'Open' && movement.created_at.toISOString() >= (events.openAt ?? '');
}

/** The invoice that a payable names, if the payer owns it: the id came from a client. */
function findInvoice(db: Database, { fields, account_id }: Resource): Promise<Resource | undefined> {
  return db
    .selectFrom('resources')
    .selectAll()
    .where('kind', '=', 'Invoice')
    .where('id', '=', String(fields.invoiceId))
    .where('account_id', '=', account_id)
    .executeTakeFirst();
}
