import { catalog, exampleFields, idPrefixOf } from '../catalog/catalog.ts';
import type { CatalogResource } from '../catalog/resource.ts';
import type { Database } from '../database/schema.ts';
import { afterPart, type Resource } from '../events/transitions.ts';
import { type NewResource, resourceRow } from '../resources/resources.ts';
import { type DemoAccount, demoAccounts, demoOrganization } from './accounts.ts';
import { BEGIN_MS, HOUR_MS, numbered, type Seeds, specialSeeds } from './special-seeds.ts';

/** Fills an empty database with demo data of every kind in the catalog. A database with data is left unchanged. */
export async function seedDemoData(db: Database): Promise<void> {
  const resident = await db.selectFrom('resources').select('id').limit(1).executeTakeFirst();
  if (resident) return;
  const rows = [...organizationSeeds(), ...demoAccounts.flatMap(accountSeeds)].map(resourceRow);
  await db
    .insertInto('resources')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

function organizationSeeds(): NewResource[] {
  const { id, name, serviceAccount } = demoOrganization;
  const at = new Date(BEGIN_MS);
  const events = { createdAt: at.toISOString() };
  const common = { status: 'Activated', events, organization_id: id, at };
  return [
    { ...common, id, kind: 'Organization', external_id: 'erp-quayside', fields: { name } },
    {
      ...common,
      id: serviceAccount,
      kind: 'ServiceAccount',
      events: { ...events, activatedAt: at.toISOString() },
      external_id: 'erp-reporting',
      fields: { name: 'Group reporting' },
    },
  ];
}

/** Kinds without seed data: those that the demo identities provide, and operations, which only requests create. */
const NOT_PER_ACCOUNT = new Set(['Organization', 'Operation']);

function accountSeeds(account: DemoAccount): NewResource[] {
  return Object.entries(catalog).flatMap(([kind, entry]) =>
    NOT_PER_ACCOUNT.has(kind) ? [] : seedsOf(account, kind, entry, specialSeeds[kind] ?? {}),
  );
}

const COUNT = 3;

function seedsOf(account: DemoAccount, kind: string, entry: CatalogResource, seeds: Seeds): NewResource[] {
  return Array.from({ length: seeds.count ?? COUNT }, (_, index): NewResource => {
    const at = new Date(BEGIN_MS + index * HOUR_MS);
    const id = numbered(idPrefixOf(kind), account, index);
    const made = seeds.make?.(account, index, at);
    const isOfPerson = !entry.scopes.includes('Account');
    return {
      id,
      kind,
      at,
      account_id: account.id,
      person_id: isOfPerson ? account.person.id : null,
      counterparty_account_id: entry.bothParties ? account.pays : null,
      external_id: `erp-${id}`,
      ...(entry.parent !== undefined && {
        parent: { type: entry.parent, id: numbered(idPrefixOf(entry.parent), account, index) },
      }),
      ...historyOf(entry, made?.status, index, at),
      fields: fieldsOf(account, entry, index),
      ...made,
    };
  });
}

/** The first resource of a kind is in its first state, the second is one event further, and so on, unless its status is given. */
function historyOf({ events }: CatalogResource, status: string | undefined, index: number, at: Date) {
  const begin: Pick<Resource, 'status' | 'events'> = {
    status: 'Created',
    events: { createdAt: at.toISOString() },
  };
  const parts = Object.keys(events).filter((part) => part !== 'Created');
  if (status !== undefined) return parts.includes(status) ? afterPart(begin, status, at) : begin;
  return parts.slice(0, index).reduce((state, part) => afterPart(state, part, at), begin);
}

/** The examples of the catalog, with references to the Account's own resources. */
function fieldsOf(account: DemoAccount, entry: CatalogResource, index: number): Record<string, unknown> {
  const examples = Object.entries(exampleFields(entry)).map(([name, example]) => {
    const kind = entry.fields[name]?.['x-resource'];
    return [name, kind ? numbered(idPrefixOf(kind), account, index) : example];
  });
  return Object.fromEntries(examples);
}
