import { ACCOUNT, AMOUNT, type Catalog, CURRENCY, day, idOf, oneOf, text } from './resource.ts';

/** Contract section 6.3, payments. */
export const paymentsCatalog: Catalog = {
  FundsMovement: {
    domain: 'payments',
    what: 'One movement of money between accounts that backs a payment.',
    scopes: ACCOUNT,
    bothParties: true,
    moneyMovement: true,
    idPrefix: 'fm',
    filters: ['payableId'],
    fields: {
      payableId: idOf('Payable', 'The payable that it pays.', 'payable_1001'),
      amount: AMOUNT,
      currency: CURRENCY,
    },
    events: {
      Created: 'A funds movement was created.',
      Processing: 'The rail is processing the funds movement.',
      Completed: 'The funds movement completed.',
      Failed: 'The funds movement failed.',
      Returned: 'The rail returned the funds movement after it was processed.',
      Cancelled: 'The funds movement was cancelled.',
    },
  },
  GroupMember: {
    domain: 'payments',
    what: 'A payee added to a payee group.',
    scopes: ACCOUNT,
    filters: ['groupId', 'payeeId'],
    fields: {
      groupId: text('The payee group.', 'group_1001'),
      payeeId: idOf('Payee', 'The member.', 'payee_1001'),
    },
    events: { Created: 'A payee was added to a payee group.' },
  },
  InternalAccount: {
    domain: 'payments',
    what: 'A financial account held by the platform for an Account.',
    scopes: ACCOUNT,
    fields: {
      name: text('What its owner calls it.', 'Operating account'),
      currency: CURRENCY,
    },
    events: {
      Opened: 'A financial account was opened.',
      Closed: 'A financial account was closed.',
      Created: 'A financial account was created.',
      Updated: 'A financial account changed.',
    },
  },
  Invoice: {
    domain: 'payments',
    what: 'A billing document.',
    scopes: ACCOUNT,
    bothParties: true,
    moneyMovement: true,
    filters: ['payeeId'],
    optional: ['dueOn'],
    fields: {
      payeeId: idOf('Payee', 'Who is to be paid.', 'payee_1001'),
      amount: AMOUNT,
      currency: CURRENCY,
      dueOn: day('When it is due.', '2026-02-05'),
    },
    events: {
      PaymentInTransit: 'Payment on the invoice has started and is in transit.',
      Paid: 'The invoice was marked paid; funds may still be in transit.',
      DepositConfirmed:
        'The originating bank or provider reported the outbound payment as processed; a return is still possible.',
      Returned: 'A payment on the invoice was returned after it was sent.',
      PaymentFailed: 'A payment attempt on the invoice failed.',
    },
  },
  InvoicePayment: {
    domain: 'payments',
    what: 'One payment attempt against an invoice.',
    scopes: ACCOUNT,
    bothParties: true,
    moneyMovement: true,
    parent: 'Invoice',
    fields: {
      amount: AMOUNT,
      currency: CURRENCY,
    },
    events: {
      Initiated: 'A payment attempt against an invoice was initiated.',
      Processing: 'The payment attempt is being processed.',
      Completed: 'The payment attempt completed.',
      Failed: 'The payment attempt failed.',
      Returned: 'The payment attempt was returned.',
      Cancelled: 'The payment attempt was cancelled.',
    },
  },
  Mandate: {
    domain: 'payments',
    what: 'An authorization to debit a funding source.',
    scopes: ACCOUNT,
    fields: {
      fundingSource: text('What is debited.', 'DE89 3704 0044 0532 0130 00'),
      singleUse: { type: 'boolean', description: 'Whether one debit consumes it.', examples: [true] },
    },
    events: {
      Created: 'A mandate was created.',
      Activated: 'The mandate was activated.',
      Consumed: 'The mandate was used for a debit and cannot be reused.',
      Revoked: 'The mandate was revoked.',
      Expired: 'The mandate expired.',
      EvidenceApproved: 'The evidence for the mandate was approved.',
      EvidenceRejected: 'The evidence for the mandate was rejected.',
    },
  },
  Payable: {
    domain: 'payments',
    what: 'A payment obligation from a payer to a payee.',
    scopes: ACCOUNT,
    bothParties: true,
    moneyMovement: true,
    filters: ['payeeId', 'invoiceId'],
    optional: ['invoiceId'],
    fields: {
      payeeId: idOf('Payee', 'Who is to be paid.', 'payee_1001'),
      invoiceId: idOf('Invoice', 'The invoice that it pays.', 'invoice_1001'),
      amount: AMOUNT,
      currency: CURRENCY,
    },
    events: {
      Paid: 'The payable was marked paid; funds may still be in transit.',
      Returned: 'The payment was returned; final for that payable.',
      PartiallyPaid: "Part of the payable's amount has been paid.",
    },
  },
  Payee: {
    domain: 'payments',
    what: 'The payer-owned record of someone who is paid.',
    scopes: ACCOUNT,
    filters: ['payeeAccountId'],
    optional: ['email', 'payeeAccountId'],
    fields: {
      name: text('The name of the person or business.', 'Ada Almeida'),
      email: { ...text('Where invitations go.', 'ada.almeida@example.com'), format: 'email' },
      payeeAccountId: text("The payee's own Account, once it is associated.", 'acct_2'),
    },
    events: {
      Activated:
        'The payee recorded an Activated transition and events.activatedAt is set. Not an invitation-accepted signal.',
    },
  },
  PayrollSchedule: {
    domain: 'payments',
    what: "A payer's pay-period cadence configuration.",
    scopes: ACCOUNT,
    fields: {
      cadence: oneOf('How often is paid.', 'Monthly', 'BiWeekly', 'Weekly'),
      firstPayDate: day('The first pay day.', '2026-01-30'),
    },
    events: { Created: 'A pay-period cadence was configured.' },
  },
};
