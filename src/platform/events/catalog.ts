/** The scope types that can receive an event (contract section 6.2). */
export type Scope = 'Account' | 'Organization' | 'Person';

export interface CatalogResource {
  readonly domain: 'payments' | 'finance' | 'compliance' | 'platform';
  readonly scopes: readonly Scope[];
  /** Sent to the payer's and to the payee's Account, as two events with one `occurrenceId`. */
  readonly bothParties?: true;
  readonly moneyMovement?: true;
  /** Event part to what it means. */
  readonly events: Readonly<Record<string, string>>;
}

const ACCOUNT: readonly Scope[] = ['Account'];

const payments: Record<string, CatalogResource> = {
  FundsMovement: {
    domain: 'payments',
    scopes: ACCOUNT,
    bothParties: true,
    moneyMovement: true,
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
    scopes: ACCOUNT,
    events: { Created: 'A payee was added to a payee group.' },
  },
  InternalAccount: {
    domain: 'payments',
    scopes: ACCOUNT,
    events: {
      Opened: 'A financial account was opened.',
      Closed: 'A financial account was closed.',
      Created: 'A financial account was created.',
      Updated: 'A financial account changed.',
    },
  },
  Invoice: {
    domain: 'payments',
    scopes: ACCOUNT,
    bothParties: true,
    moneyMovement: true,
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
    scopes: ACCOUNT,
    bothParties: true,
    moneyMovement: true,
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
    scopes: ACCOUNT,
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
    scopes: ACCOUNT,
    bothParties: true,
    moneyMovement: true,
    events: {
      Paid: 'The payable was marked paid; funds may still be in transit.',
      Returned: 'The payment was returned; final for that payable.',
      PartiallyPaid: "Part of the payable's amount has been paid.",
    },
  },
  Payee: {
    domain: 'payments',
    scopes: ACCOUNT,
    events: {
      Activated:
        'The payee recorded an Activated transition and events.activatedAt is set. Not an invitation-accepted signal.',
    },
  },
  PayrollSchedule: {
    domain: 'payments',
    scopes: ACCOUNT,
    events: { Created: 'A pay-period cadence was configured.' },
  },
};

const finance: Record<string, CatalogResource> = {
  Statement: {
    domain: 'finance',
    scopes: ACCOUNT,
    events: { Created: 'A periodic account statement was created.', Updated: 'A statement changed.' },
  },
  Transaction: {
    domain: 'finance',
    scopes: ACCOUNT,
    events: { Created: 'A ledger transaction was created.', Updated: 'A ledger transaction changed.' },
  },
  Transfer: {
    domain: 'finance',
    scopes: ACCOUNT,
    moneyMovement: true,
    events: {
      Created: 'A transfer was created.',
      Updated: 'A transfer changed.',
      Processed: 'The transfer was processed.',
      Completed: 'The transfer completed.',
      Cancelled: 'The transfer was cancelled.',
      Failed: 'The transfer failed.',
    },
  },
};

/** Contract section 6.3, what moves money; catalog-compliance.ts and catalog-platform.ts have the rest. */
export const moneyCatalog: Readonly<Record<string, CatalogResource>> = { ...payments, ...finance };
