import type { NewResource } from '../resources/resources.ts';
import type { DemoAccount } from './accounts.ts';

/** The demo data of one kind, where it differs from the catalog's examples. */
export interface Seeds {
  readonly count?: number;
  make?(account: DemoAccount, index: number, at: Date): Partial<NewResource>;
}

export const BEGIN_MS = Date.parse('2026-01-05T09:00:00.000Z');
export const HOUR_MS = 3_600_000;

const FIRST_NAMES = ['Ada', 'Bruno', 'Chidi', 'Dalia', 'Emre', 'Farah', 'Goran', 'Hana', 'Idris', 'Jonna'];
const LAST_NAMES = ['Almeida', 'Brandt', 'Castillo', 'Deng', 'Eriksen', 'Fofana'];
const PAYEE_STATUSES = ['Activated', 'Activated', 'Invited', 'Activated', 'Deactivated'];
const PAYEES = 60;
const PAYABLES = 20;

/** `payable_1003`: the third payable of the first Account. */
export function numbered(prefix: string, { number }: DemoAccount, index: number): string {
  return `${prefix}_${number}${String(index + 1).padStart(3, '0')}`;
}

export const specialSeeds: Readonly<Record<string, Seeds>> = {
  Account: {
    count: 1,
    make: ({ id, name, organization }) => ({
      id,
      status: 'Activated',
      organization_id: organization,
      external_id: `erp-${id}`,
      fields: { name },
    }),
  },
  Person: {
    count: 1,
    make: ({ person }) => ({
      id: person.id,
      status: 'Activated',
      external_id: `hr-${person.id}`,
      fields: { name: person.name },
    }),
  },
  ServiceAccount: {
    count: 1,
    make: (account) => ({
      id: account.serviceAccount ?? numbered('svc', account, 0),
      status: account.serviceAccount ? 'Activated' : 'Inactivated',
    }),
  },
  Payee: { count: PAYEES, make: payee },
  Invoice: {
    count: PAYABLES,
    make: (account, index) => ({
      status: 'Open',
      external_id: `INV-${2600 + index}`,
      fields: { payeeId: numbered('payee', account, index), ...money(index), dueOn: '2026-03-31' },
    }),
  },
  Payable: {
    count: PAYABLES,
    make: (account, index, at) => ({
      status: 'Draft',
      external_id: `BILL-${2600 + index}`,
      events: { createdAt: at.toISOString() },
      fields: {
        payeeId: numbered('payee', account, index),
        invoiceId: numbered('invoice', account, index),
        ...money(index),
      },
    }),
  },
  TaxForm: {
    count: 5,
    make: (_account, index) => ({
      status: 'Draft',
      external_id: `w9-${2021 + index}`,
      fields: { form: 'W-9', year: 2021 + index },
    }),
  },
  VaultFile: {
    make: (_account, index) => ({ status: 'Stored', fields: { name: `contract-${index + 1}.pdf` } }),
  },
  Notification: {
    count: 12,
    make: (_account, index) => ({
      status: 'Delivered',
      fields: { subject: `Invoice INV-${2600 + index} was received` },
    }),
  },
  MfaFactor: {
    count: 2,
    make: (_account, index) => ({
      status: 'Activated',
      fields: { type: index === 0 ? 'Totp' : 'Passkey' },
    }),
  },
  // A key without a known secret, which cannot be used. Working keys are created through the API.
  ApiKey: { count: 1, make: () => ({ status: 'Revoked' }) },
};

function payee(account: DemoAccount, index: number, at: Date): Partial<NewResource> {
  const status = PAYEE_STATUSES[index % PAYEE_STATUSES.length] ?? 'Activated';
  const name = `${FIRST_NAMES[index % FIRST_NAMES.length]} ${LAST_NAMES[Math.floor(index / FIRST_NAMES.length) % LAST_NAMES.length]}`;
  const isActivated = status === 'Activated';
  return {
    status,
    external_id: `vendor-${1001 + index}`,
    fields: {
      name,
      email: `${name.toLowerCase().replace(' ', '.')}@example.com`,
      ...(isActivated && { payeeAccountId: account.pays }),
    },
    events: { createdAt: at.toISOString(), ...(isActivated && { activatedAt: at.toISOString() }) },
  };
}

function money(index: number): Record<string, unknown> {
  return { amount: `${120 + index * 35}.50`, currency: 'EUR' };
}
