import { ACCOUNT, type Catalog, type CatalogResource, idOf, text } from './resource.ts';

/** Contract section 6.3: the data of a connected accounting system, and the connection itself. */
export const accountingCatalog: Catalog = {
  AccountingClass: record('A class', 'Marketing'),
  AccountingConnection: {
    domain: 'platform',
    what: 'A connection to an accounting system.',
    scopes: ACCOUNT,
    fields: {
      system: text('The accounting system.', 'Ledgerly'),
    },
    events: {
      Created: 'A connection to an accounting system was created.',
      Connected: 'The connection was established.',
      TokenRefreshed: "The service refreshed the connection's partner OAuth token.",
      Disconnected: 'The partner link was torn down.',
    },
  },
  AccountingCustomer: record('A customer', 'Rowan & Sons'),
  AccountingItem: record('An item', 'Freight'),
  AccountingVendor: record('A vendor', 'Paper Mill'),
};

function record(what: string, example: string): CatalogResource {
  return {
    domain: 'platform',
    what: `${what} read from a connected accounting system.`,
    scopes: ACCOUNT,
    filters: ['connectionId'],
    fields: {
      name: text('Its name there.', example),
      connectionId: idOf('AccountingConnection', 'Where it was read.', 'accountingconnection_1001'),
    },
    events: {
      Created: `${what} was read from the accounting system for the first time.`,
      Refreshed: `${what} was read again from the accounting system.`,
    },
  };
}
