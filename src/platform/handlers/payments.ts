import type { Handlers } from '../http/routes.ts';
import { ofAccount } from '../lists/scope.ts';
import { acceptOperation } from '../operations/operations.ts';
import { checkOpenable, PAYABLE_OPEN } from '../operations/payable-open.ts';
import { findOwnedResource } from '../resources/resources.ts';
import { listOf, pathId, readOf, type Services } from './services.ts';

/** `/v3/payments/…` */
export function paymentsHandlers(services: Services): Handlers {
  return {
    listPayees: listOf(services, 'Payee', ofAccount),
    getPayee: readOf('Payee', 'payeeId'),
    listPayables: listOf(services, 'Payable', ofAccount),
    getPayable: readOf('Payable', 'payableId'),
    listInvoices: listOf(services, 'Invoice', ofAccount),
    getInvoice: readOf('Invoice', 'invoiceId'),
    async openPayable(call, db) {
      const payable = await findOwnedResource(db, call.caller, 'Payable', pathId(call, 'payableId'));
      checkOpenable(payable);
      const input = { payableId: payable.id };
      const now = services.settings.now();
      return {
        status: 202,
        body: await acceptOperation(db, services.jobs, call.caller, PAYABLE_OPEN, input, now),
      };
    },
  };
}
