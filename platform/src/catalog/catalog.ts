import { randomUUID } from 'node:crypto';
import { accountingCatalog } from './accounting.ts';
import { complianceCatalog } from './compliance.ts';
import { financeCatalog } from './finance.ts';
import { paymentsCatalog } from './payments.ts';
import { platformCatalog } from './platform.ts';
import type { Catalog, CatalogResource } from './resource.ts';

/** Every kind of resource. Each entry gives it a list, a read, event types, a schema and demo data. */
export const catalog: Catalog = {
  ...paymentsCatalog,
  ...financeCatalog,
  ...complianceCatalog,
  ...accountingCatalog,
  ...platformCatalog,
};

/** The catalog's entry for a kind. Undefined for an unknown kind. */
export function findCatalogResource(kind: string): CatalogResource | undefined {
  return Object.hasOwn(catalog, kind) ? catalog[kind] : undefined;
}

/** The names of a kind in paths, operations and messages. */
export interface ResourceNames {
  /** `/v3/payments/funds-movements` */
  readonly path: string;
  /** `fundsMovementId` */
  readonly parameter: string;
  /** `listFundsMovements` */
  readonly list: string;
  /** `getFundsMovement` */
  readonly read: string;
  /** `funds movement` */
  readonly singular: string;
  /** `funds movements` */
  readonly plural: string;
}

export function namesOf(kind: string, { domain }: CatalogResource): ResourceNames {
  const singular = spaced(kind);
  const many = pluralOf(kind);
  return {
    path: `/v3/${domain}/${spaced(many).replaceAll(' ', '-')}`,
    parameter: `${kind.charAt(0).toLowerCase()}${kind.slice(1)}Id`,
    list: `list${many}`,
    read: `get${kind}`,
    singular,
    plural: spaced(many),
  };
}

/** A new id of a kind: `payable_…` */
export function newId(kind: string): string {
  return `${idPrefixOf(kind)}_${randomUUID()}`;
}

export function idPrefixOf(kind: string): string {
  return findCatalogResource(kind)?.idPrefix ?? kind.toLowerCase();
}

/** The required members of a resource, with their example values. */
export function exampleFields({
  fields,
  optional = [],
}: CatalogResource): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, { examples }]) =>
      examples[0] === undefined || optional.includes(name) ? [] : [[name, examples[0]]],
    ),
  );
}

/** `FundsMovement` as `funds movement`. */
export function spaced(kind: string): string {
  return kind.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
}

function pluralOf(kind: string): string {
  if (/[^aeiou]y$/.test(kind)) return `${kind.slice(0, -1)}ies`;
  return kind.endsWith('s') ? `${kind}es` : `${kind}s`;
}
