import { newId } from '../catalog/catalog.ts';
import { CURRENCIES } from '../catalog/currencies.ts';
import type { Database } from '../database/schema.ts';
import { lockResource, type Resource, recordTransition } from '../events/transitions.ts';
import type { Call } from '../http/call.ts';
import { invalid, PlatformError } from '../http/problems.ts';
import type { Answer, Handlers } from '../http/routes.ts';
import { timeOf } from '../lists/filters.ts';
import { acceptOperation } from '../operations/operations.ts';
import { accountOfPayee, checkOpenable, PAYABLE_OPEN } from '../operations/payable-open.ts';
import {
  findOwnedResource,
  insertResource,
  type NewResource,
  resourceBody,
  updateFields,
} from '../resources/resources.ts';
import { ok, pathId, type Services } from './services.ts';

interface PayeeBody {
  readonly name: string;
  readonly email?: string;
  readonly externalId?: string;
}

interface DebtBody {
  readonly payeeId: string;
  readonly invoiceId?: string;
  readonly amount: string;
  readonly currency: string;
  readonly dueOn?: string;
  readonly externalId?: string;
}

/** `/v3/payments/…`: the steps of a payment, from creating its payee to opening its payable. */
export function paymentsHandlers({ jobs, settings }: Services): Handlers {
  const { now } = settings;
  return {
    createPayee(call, db) {
      const { externalId = null, ...fields } = call.body as PayeeBody;
      return create(db, call, now(), 'Payee', { status: 'Invited', external_id: externalId, fields });
    },
    async associatePayeeAccount(call, db) {
      const { id } = await findOwnedResource(db, call.caller, 'Payee', pathId(call, 'payeeId'));
      const { accountId } = call.body as { accountId: string };
      if (accountId === call.caller.accountId) throw invalid('accountId', 'is the payer itself');
      // A parallel request may be associating it.
      const payee = await lockResource(db, id);
      // An event stands for a transition (contract section 6.4), and nothing changes here.
      if (payee.status === 'Activated' && payee.fields.payeeAccountId === accountId)
        return ok(resourceBody(payee));
      await updateFields(db, payee.id, { payeeAccountId: accountId });
      return ok(resourceBody(await recordTransition(db, payee, { part: 'Activated', at: now() })));
    },
    createInvoice: async (call, db) => create(db, call, now(), 'Invoice', await newDebt(db, call, 'Open')),
    createPayable: async (call, db) => create(db, call, now(), 'Payable', await newDebt(db, call, 'Draft')),
    async openPayable(call, db) {
      const payable = await findOwnedResource(db, call.caller, 'Payable', pathId(call, 'payableId'));
      checkOpenable(payable);
      const work = {
        type: PAYABLE_OPEN,
        input: { payableId: payable.id },
        externalId: payable.external_id,
      };
      return { status: 202, body: await acceptOperation(db, jobs, call.caller, work, now()) };
    },
  };
}

type NewPart = Pick<NewResource, 'status' | 'external_id' | 'counterparty_account_id' | 'fields'>;

/** Only the resource is written, because these `Created` events are not published (contract section 6.5). */
async function create(db: Database, call: Call, at: Date, kind: string, part: NewPart): Promise<Answer> {
  const resource = await insertResource(db, {
    id: newId(kind),
    kind,
    account_id: call.caller.accountId,
    events: { createdAt: at.toISOString() },
    at,
    ...part,
  });
  return { status: 201, body: resourceBody(resource) };
}

/** Creates an invoice or a payable from the body. The acting Account must own what it names; its payee is the other party. */
async function newDebt(db: Database, call: Call, status: string): Promise<NewPart> {
  const { externalId = null, ...fields } = call.body as DebtBody;
  if (!/[1-9]/.test(fields.amount)) throw invalid('amount', 'must be greater than 0');
  // The format allows the year 0, which many clients cannot read.
  if (fields.dueOn !== undefined) timeOf(fields.dueOn, 'dueOn');
  if (!CURRENCIES.has(fields.currency)) throw invalid('currency', 'is not a currency of ISO 4217');
  const payee = await findNamed(db, call, 'Payee', 'payeeId', fields.payeeId);
  if (fields.invoiceId !== undefined) {
    const invoice = await findNamed(db, call, 'Invoice', 'invoiceId', fields.invoiceId);
    if (invoice.fields.payeeId !== payee.id) throw invalid('invoiceId', 'names an invoice of another payee');
  }
  return { status, external_id: externalId, counterparty_account_id: accountOfPayee(payee), fields };
}

/** The resource that a member of the body names. Throws a 422 for the member if the acting Account does not own it. */
async function findNamed(
  db: Database,
  call: Call,
  kind: string,
  field: string,
  id: string,
): Promise<Resource> {
  try {
    return await findOwnedResource(db, call.caller, kind, id);
  } catch (error) {
    if (error instanceof PlatformError)
      throw invalid(field, `names no ${kind.toLowerCase()} of this Account`);
    throw error;
  }
}
