import type { CatalogResource, Scope } from './catalog.ts';

const ACCOUNT: readonly Scope[] = ['Account'];

function accounting(record: string): CatalogResource {
  return {
    domain: 'platform',
    scopes: ACCOUNT,
    events: {
      Created: `${record} was read from the accounting system for the first time.`,
      Refreshed: `${record} was read again from the accounting system.`,
    },
  };
}

/** Contract section 6.3, the platform's own resources. */
export const platformCatalog: Readonly<Record<string, CatalogResource>> = {
  Account: {
    domain: 'platform',
    scopes: ACCOUNT,
    events: { Closed: 'The Account was closed.', Updated: 'The Account changed.' },
  },
  AccountingClass: accounting('A class'),
  AccountingConnection: {
    domain: 'platform',
    scopes: ACCOUNT,
    events: {
      Created: 'A connection to an accounting system was created.',
      Connected: 'The connection was established.',
      TokenRefreshed: "The service refreshed the connection's partner OAuth token.",
      Disconnected: 'The partner link was torn down.',
    },
  },
  AccountingCustomer: accounting('A customer'),
  AccountingItem: accounting('An item'),
  AccountingVendor: accounting('A vendor'),
  ApiKey: {
    domain: 'platform',
    scopes: ['Account', 'Organization', 'Person'],
    events: {
      Created: 'An API key was issued.',
      Revoked: 'An API key was revoked and no longer authenticates.',
    },
  },
  ComplianceEntity: {
    domain: 'platform',
    scopes: ['Account', 'Person'],
    events: {
      Created: 'A verified legal identity was created.',
      Updated: 'A verified legal identity changed.',
    },
  },
  Notification: {
    domain: 'platform',
    scopes: ['Person'],
    events: {
      Created: "A notification was put in a Person's inbox.",
      Sent: 'The notification was sent on the channel in context.channel.',
      Delivered: 'The notification was delivered on the channel in context.channel.',
      Failed: 'The notification failed on the channel in context.channel.',
      Viewed: 'The Person viewed the notification.',
      Dismissed: 'The Person dismissed the notification.',
    },
  },
  NotificationSubscription: {
    domain: 'platform',
    scopes: ACCOUNT,
    events: {
      Created: 'An Account-level rule that routes notifications was created.',
      Deleted: 'An Account-level rule that routes notifications was deleted.',
    },
  },
  Operation: {
    domain: 'platform',
    scopes: ['Account', 'Person'],
    events: {
      Created: 'An asynchronous operation was accepted.',
      Completed: 'Every item of the operation succeeded.',
      PartiallyCompleted: 'Some but not all items of the operation failed.',
      Failed: 'The operation failed; it carries an error.',
      Cancelled: 'The owning service cancelled the operation.',
    },
  },
  Organization: {
    domain: 'platform',
    scopes: ['Organization'],
    events: { Created: 'An Organization was created.' },
  },
  Role: {
    domain: 'platform',
    scopes: ['Account', 'Organization'],
    events: {
      Created: 'A custom role was defined.',
      Updated: 'A custom role changed.',
      Deleted: 'A custom role was deleted.',
    },
  },
  ServiceAccount: {
    domain: 'platform',
    scopes: ['Account', 'Organization'],
    events: {
      Created: 'A machine identity was created.',
      Updated: 'A machine identity changed.',
      Activated: 'A machine identity was activated.',
      Inactivated: 'A machine identity was inactivated.',
      Disabled: 'A machine identity was disabled.',
    },
  },
};

/** Contract section 6.5: known, but not published. Where it gives only a family, these are its members. */
export const reservedTypes: Readonly<
  Record<string, { readonly domain: CatalogResource['domain']; readonly description: string }>
> = {
  'Payee.Created': { domain: 'payments', description: 'Reserved: a payee was created.' },
  'Payee.Deactivated': { domain: 'payments', description: 'Reserved: a payee was deactivated.' },
  'PayeeLinkRequest.Created': { domain: 'payments', description: 'Reserved: a payee link was requested.' },
  'PayeeLinkRequest.Accepted': { domain: 'payments', description: 'Reserved: a link request was accepted.' },
  'PayeeLinkRequest.Declined': { domain: 'payments', description: 'Reserved: a link request was declined.' },
  'Engagement.EligibilityChanged': {
    domain: 'payments',
    description: 'Reserved: the eligibility of an engagement changed.',
  },
  'Payout.Created': { domain: 'payments', description: 'Reserved: a payout was created.' },
  'Payout.Completed': { domain: 'payments', description: 'Reserved: a payout completed.' },
  'Payout.Failed': { domain: 'payments', description: 'Reserved: a payout failed.' },
  'Payable.DepositConfirmed': {
    domain: 'payments',
    description: 'Reserved: the deposit of a payable was confirmed.',
  },
  'PayrollRun.Created': { domain: 'payments', description: 'Reserved: a payroll run was created.' },
  'PayrollRun.Completed': { domain: 'payments', description: 'Reserved: a payroll run completed.' },
  'TaxForm.Submitted': { domain: 'compliance', description: 'Reserved: a tax form was submitted.' },
  'TaxFiling.Accepted': { domain: 'compliance', description: 'Reserved: a tax filing was accepted.' },
  'TaxFiling.Rejected': { domain: 'compliance', description: 'Reserved: a tax filing was rejected.' },
};
