import { ACCOUNT, type Catalog, oneOf, text } from './resource.ts';

/** Contract section 6.3: the platform's own resources, including those that emit no events. */
export const platformCatalog: Catalog = {
  Account: {
    domain: 'platform',
    what: 'A business entity.',
    scopes: ACCOUNT,
    idPrefix: 'acct',
    sharedInOrganization: true,
    restartsList: true,
    fields: {
      name: text('Its name.', 'Harbour Books'),
    },
    events: { Closed: 'The Account was closed.', Updated: 'The Account changed.' },
  },
  ApiKey: {
    domain: 'platform',
    what: 'An API key issued to a Person or a ServiceAccount.',
    scopes: ['Account', 'Organization', 'Person'],
    idPrefix: 'key',
    keptToAccount: true,
    filters: ['principalId'],
    fields: {
      name: text('What its owner calls it.', 'Nightly export'),
      principalId: text('The Person or ServiceAccount that it authenticates.', 'svc_1'),
      principalType: oneOf('What that is.', 'ServiceAccount', 'Person'),
      hint: text('The beginning of the key, to recognise it by.', 'wk_3fA9'),
    },
    events: {
      Created: 'An API key was issued.',
      Revoked: 'An API key was revoked and no longer authenticates.',
    },
  },
  ComplianceEntity: {
    domain: 'platform',
    what: 'The verified legal identity (name, tax ID, address, entity type) behind an Account or a Person.',
    scopes: ['Account', 'Person'],
    fields: {
      legalName: text('Its legal name.', 'Harbour Books Ltd'),
      entityType: oneOf('What it is.', 'Business', 'Individual'),
      taxIdHint: text('The last digits of its tax ID.', '6789'),
    },
    events: {
      Created: 'A verified legal identity was created.',
      Updated: 'A verified legal identity changed.',
    },
  },
  Notification: {
    domain: 'platform',
    what: "A notification in a Person's inbox.",
    scopes: ['Person'],
    fields: {
      subject: text('Its subject.', 'Invoice INV-2600 was received'),
    },
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
    what: 'An Account-level rule that routes notifications.',
    scopes: ACCOUNT,
    fields: {
      topic: text('What it routes.', 'Invoices'),
      channel: oneOf('Where to.', 'Email', 'InApp', 'SMS'),
    },
    events: {
      Created: 'An Account-level rule that routes notifications was created.',
      Deleted: 'An Account-level rule that routes notifications was deleted.',
    },
  },
  Operation: {
    domain: 'platform',
    what: 'An AsyncOperation returned with 202 Accepted.',
    scopes: ['Account', 'Person'],
    idPrefix: 'op',
    fields: {},
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
    what: 'A tenant that groups Accounts.',
    scopes: ['Organization'],
    idPrefix: 'org',
    fields: {
      name: text('Its name.', 'Quayside Group'),
    },
    events: { Created: 'An Organization was created.' },
  },
  Role: {
    domain: 'platform',
    what: 'A custom role definition. System roles never change and emit no events.',
    scopes: ['Account', 'Organization'],
    fields: {
      name: text('Its name.', 'Approver'),
    },
    events: {
      Created: 'A custom role was defined.',
      Updated: 'A custom role changed.',
      Deleted: 'A custom role was deleted.',
    },
  },
  ServiceAccount: {
    domain: 'platform',
    what: 'A machine identity owned by an Account or an Organization.',
    scopes: ['Account', 'Organization'],
    idPrefix: 'svc',
    fields: {
      name: text('What it is for.', 'Bookkeeping sync'),
    },
    events: {
      Created: 'A machine identity was created.',
      Updated: 'A machine identity changed.',
      Activated: 'A machine identity was activated.',
      Inactivated: 'A machine identity was inactivated.',
      Disabled: 'A machine identity was disabled.',
    },
  },
  Person: {
    domain: 'platform',
    what: 'A human principal. Persons emit no events.',
    scopes: ACCOUNT,
    restartsList: true,
    fields: {
      name: text('Their name.', 'Ines Duarte'),
    },
    events: {},
  },
  MfaFactor: {
    domain: 'platform',
    what: "A Person's own MFA factor. Factors emit no events.",
    scopes: ['Person'],
    idPrefix: 'mfa',
    personOnly: true,
    fields: {
      type: oneOf('What it is.', 'Totp', 'Passkey'),
    },
    events: {},
  },
};
