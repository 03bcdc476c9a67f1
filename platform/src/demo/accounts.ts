/** An Account of the demo, with the Person and the ServiceAccount that act for it. */
export interface DemoAccount {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly organization: string | null;
  readonly person: { readonly id: string; readonly name: string };
  /** Absent if the ServiceAccount of its Organization acts for it. */
  readonly serviceAccount: string | undefined;
  /** The Account that this one pays, which is the other party of its events. */
  readonly pays: string;
}

/** The Accounts that the gateway's demo identities act for (src/demo/identities.yaml). */
export const demoAccounts: readonly DemoAccount[] = [
  {
    id: 'acct_1',
    number: 1,
    name: 'Harbour Books',
    organization: 'org_1',
    pays: 'acct_2',
    person: { id: 'person_1', name: 'Ines Duarte' },
    serviceAccount: 'svc_1',
  },
  {
    id: 'acct_2',
    number: 2,
    name: 'Northwind Couriers',
    organization: 'org_1',
    pays: 'acct_3',
    person: { id: 'person_2', name: 'Tomasz Lis' },
    serviceAccount: undefined,
  },
  {
    id: 'acct_3',
    number: 3,
    name: 'Olive & Thyme Catering',
    organization: null,
    pays: 'acct_1',
    person: { id: 'person_3', name: 'Amara Obi' },
    serviceAccount: 'svc_3',
  },
];

export const demoOrganization = { id: 'org_1', name: 'Quayside Group', serviceAccount: 'svc_org' };
