import { type NewResource, resourceRow } from '../resources/resources.ts';
import type { Database } from './schema.ts';

interface DemoAccount {
  readonly id: string;
  readonly name: string;
  readonly organization: string | undefined;
  readonly person: string;
  readonly personName: string;
  /** The Account of everyone whom this one pays: the other party of its events. */
  readonly pays: string;
}

/** The Accounts that the gateway's demo identities act for. */
const accounts: readonly DemoAccount[] = [
  demoAccount('1', 'Harbour Books', 'Ines Duarte', 'org_1', 'acct_2'),
  demoAccount('2', 'Northwind Couriers', 'Tomasz Lis', 'org_1', 'acct_3'),
  demoAccount('3', 'Olive & Thyme Catering', 'Amara Obi', undefined, 'acct_1'),
];

const FIRST_NAMES = ['Ada', 'Bruno', 'Chidi', 'Dalia', 'Emre', 'Farah', 'Goran', 'Hana', 'Idris', 'Jonna'];
const LAST_NAMES = ['Almeida', 'Brandt', 'Castillo', 'Deng', 'Eriksen', 'Fofana'];
const PAYEE_STATUSES = ['Activated', 'Activated', 'Invited', 'Activated', 'Deactivated'];
const PAYEES = 60;
const PAYABLES = 20;
const BEGIN_MS = Date.parse('2026-01-05T09:00:00.000Z');
const HOUR_MS = 3_600_000;

/** Fills an empty database with demo data; leaves any other as it is. */
export async function seedDemoData(db: Database): Promise<void> {
  const resident = await db.selectFrom('resources').select('id').limit(1).executeTakeFirst();
  if (resident) return;
  const rows = accounts.flatMap((account, index) => seedAccount(account, index + 1)).map(resourceRow);
  await db
    .insertInto('resources')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

function demoAccount(
  number: string,
  name: string,
  personName: string,
  organization: string | undefined,
  pays: string,
): DemoAccount {
  return { id: `acct_${number}`, name, organization, person: `person_${number}`, personName, pays };
}

function seedAccount(account: DemoAccount, number: number): NewResource[] {
  const own = (kind: string, prefix: string, count: number, more: (index: number) => Partial<NewResource>) =>
    Array.from({ length: count }, (_, index): NewResource => {
      const at = new Date(BEGIN_MS + index * HOUR_MS);
      const id = `${prefix}_${number}${String(index + 1).padStart(3, '0')}`;
      const events = { createdAt: at.toISOString() };
      return { id, kind, status: 'Draft', account_id: account.id, events, at, ...more(index) };
    });
  const inbox = { account_id: null, person_id: account.person };
  return [
    accountResource(account),
    personResource(account),
    ...own('Payee', 'payee', PAYEES, payee),
    ...own('Invoice', 'invoice', PAYABLES, (index) => ({
      status: 'Open',
      external_id: `INV-${2600 + index}`,
      counterparty_account_id: account.pays,
      fields: money(index),
    })),
    ...own('Payable', 'payable', PAYABLES, (index) => ({
      counterparty_account_id: account.pays,
      fields: {
        ...money(index),
        payeeId: numbered('payee', number, index),
        invoiceId: numbered('invoice', number, index),
      },
    })),
    ...own('TaxForm', 'taxform', 5, (index) => ({ fields: { form: 'W-9', year: 2021 + index } })),
    ...own('VaultFile', 'file', 3, (index) => ({
      status: 'Stored',
      fields: { name: `contract-${index + 1}.pdf` },
    })),
    ...own('Notification', 'notification', 12, (index) => ({
      ...inbox,
      status: 'Delivered',
      fields: { subject: `Invoice INV-${2600 + index} was received` },
    })),
    ...own('MfaFactor', 'mfa', 2, (index) => ({
      ...inbox,
      status: 'Activated',
      fields: { type: index === 0 ? 'Totp' : 'Passkey' },
    })),
  ];
}

function payee(index: number): Partial<NewResource> {
  const status = PAYEE_STATUSES[index % PAYEE_STATUSES.length] ?? 'Activated';
  const at = new Date(BEGIN_MS + index * HOUR_MS).toISOString();
  const name = `${FIRST_NAMES[index % FIRST_NAMES.length]} ${LAST_NAMES[Math.floor(index / FIRST_NAMES.length) % LAST_NAMES.length]}`;
  return {
    status,
    external_id: `vendor-${1001 + index}`,
    fields: { name, email: `${name.toLowerCase().replace(' ', '.')}@example.com` },
    events: { createdAt: at, ...(status === 'Activated' && { activatedAt: at }) },
  };
}

function accountResource({ id, name, organization }: DemoAccount): NewResource {
  const at = new Date(BEGIN_MS);
  const organization_id = organization ?? null;
  return { id, kind: 'Account', status: 'Activated', account_id: id, organization_id, fields: { name }, at };
}

function personResource({ id, person, personName: name }: DemoAccount): NewResource {
  const at = new Date(BEGIN_MS);
  return {
    id: person,
    kind: 'Person',
    status: 'Activated',
    account_id: id,
    person_id: person,
    fields: { name },
    at,
  };
}

function money(index: number): Record<string, unknown> {
  return { amount: `${120 + index * 35}.50`, currency: 'EUR' };
}

function numbered(prefix: string, number: number, index: number): string {
  return `${prefix}_${number}${String(index + 1).padStart(3, '0')}`;
}
