import { newId } from '../catalog/catalog.ts';
import type { Database } from '../database/schema.ts';
import { lockResource, type Resource, recordTransition } from '../events/transitions.ts';
import { invalid } from '../http/problems.ts';
import type { Jobs } from '../jobs/queue.ts';
import type { Job } from '../jobs/runner.ts';
import { insertResource } from '../resources/resources.ts';
import type { OperationWork } from './run.ts';

export const SETTLEMENT_QUEUE = 'settlements';
export const PAYABLE_OPEN = 'Payable.Open';

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
  return async (db, operation, now) => {
    const payable = await lockResource(db, String(operation.input.payableId));
    checkOpenable(payable);
    if (payable.status === 'Open' || payable.status === 'Paid') {
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
    const startAfter = new Date(now.getTime() + settlementSeconds * 1000);
    const data = { payableId: payable.id, fundsMovementId: movement.id };
    await jobs.enqueue(db, SETTLEMENT_QUEUE, [{ data, startAfter }]);
    return { status: 'Completed', result: { ...data, status: opened.status } };
  };
}

/** The Account of a payee, which is the other party of its payments. Null until one is associated. */
export function accountOfPayee({ fields }: Pick<Resource, 'fields'>): string | null {
  const { payeeAccountId } = fields;
  return typeof payeeAccountId === 'string' ? payeeAccountId : null;
}

/** The payee may have got an Account, or another one, since the payable was created. */
async function updateParty(db: Database, payable: Resource): Promise<string | null> {
  const payee = await db
    .selectFrom('resources')
    .select('fields')
    .where('id', '=', String(payable.fields.payeeId))
    .executeTakeFirst();
  const party = payee === undefined ? payable.counterparty_account_id : accountOfPayee(payee);
  await db
    .updateTable('resources')
    .set({ counterparty_account_id: party })
    .where('id', '=', payable.id)
    .execute();
  return party;
}

/** Completes the movement of funds, and marks the payable and its invoice as paid. */
export function settle(db: Database, now: () => Date, job: Job): Promise<void> {
  return db.transaction().execute(async (trx) => {
    const at = now();
    const payable = await lockResource(trx, job.data.payableId ?? '');
    if (payable.status !== 'Open') return;
    await recordTransition(trx, { id: job.data.fundsMovementId ?? '' }, { part: 'Completed', at });
    await recordTransition(trx, payable, { part: 'Paid', at });
    if (typeof payable.fields.invoiceId !== 'string') return;
    const invoice = await lockResource(trx, payable.fields.invoiceId);
    // Only if the payer owns it: the id came from a client.
    if (invoice.kind !== 'Invoice' || invoice.account_id !== payable.account_id) return;
    await recordTransition(trx, invoice, { part: 'Paid', at });
  });
}
