import { ACCOUNT, AMOUNT, type Catalog, CURRENCY, day, idOf, oneOf, text } from './resource.ts';

/** Contract section 6.3, finance. */
export const financeCatalog: Catalog = {
  Statement: {
    domain: 'finance',
    what: 'A periodic account statement.',
    scopes: ACCOUNT,
    filters: ['internalAccountId'],
    fields: {
      internalAccountId: idOf('InternalAccount', 'The financial account.', 'internalaccount_1001'),
      periodFrom: day('Its first day.', '2026-01-01'),
      periodTo: day('Its last day.', '2026-01-31'),
    },
    events: { Created: 'A periodic account statement was created.', Updated: 'A statement changed.' },
  },
  Transaction: {
    domain: 'finance',
    what: "A ledger transaction on an Account's financial account.",
    scopes: ACCOUNT,
    filters: ['internalAccountId'],
    fields: {
      internalAccountId: idOf('InternalAccount', 'The financial account.', 'internalaccount_1001'),
      direction: oneOf('Seen from the financial account.', 'Debit', 'Credit'),
      amount: AMOUNT,
      currency: CURRENCY,
    },
    events: { Created: 'A ledger transaction was created.', Updated: 'A ledger transaction changed.' },
  },
  Transfer: {
    domain: 'finance',
    what: "A transfer between an Account's own financial accounts or external bank accounts.",
    scopes: ACCOUNT,
    moneyMovement: true,
    filters: ['internalAccountId'],
    fields: {
      internalAccountId: idOf('InternalAccount', 'Where the money comes from.', 'internalaccount_1001'),
      destination: text('Where it goes.', 'GB29 NWBK 6016 1331 9268 19'),
      amount: AMOUNT,
      currency: CURRENCY,
    },
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
