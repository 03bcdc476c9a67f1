/** The scope types that can receive an event (contract section 6.2). */
export type Scope = 'Account' | 'Organization' | 'Person';

export type Domain = 'payments' | 'finance' | 'compliance' | 'platform';

/** A member of a resource, as JSON Schema with an example; the demo data is made of the examples. */
export interface Field {
  readonly type: 'string' | 'integer' | 'boolean';
  readonly description: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly examples: readonly (string | number | boolean)[];
  /** The kind of resource whose id this is. */
  readonly 'x-resource'?: string;
}

/** What the platform knows of one kind of resource (contract sections 2.1 and 6.3). */
export interface CatalogResource {
  readonly domain: Domain;
  /** A sentence: what a resource of this kind is. */
  readonly what: string;
  /** Who receives its events and reads it. */
  readonly scopes: readonly Scope[];
  /** Events go to the payer's and to the payee's Account, as two events with one `occurrenceId`; both read it. */
  readonly bothParties?: true;
  readonly moneyMovement?: true;
  /** Served to a Person only, and counted for the Person. */
  readonly personOnly?: true;
  /** Contract section 4.1 rule 6: a stale page token starts the list again. */
  readonly restartsList?: true;
  /** Read by every Account of the Organization, although its events go to the Account alone. */
  readonly sharedInOrganization?: true;
  /** Of its ids; the kind in lower case where there is none. */
  readonly idPrefix?: string;
  /** The kind named by `parent`. */
  readonly parent?: string;
  /** Beyond id, status, externalId, parent, times and parties; the contract shows none, so these are our own. */
  readonly fields: Readonly<Record<string, Field>>;
  /** Those of the fields that a resource may lack. */
  readonly optional?: readonly string[];
  /** Fields that lists filter by, beside status, externalId and createdAt. */
  readonly filters?: readonly string[];
  /** Event part to what it means. Empty for a resource whose events are not published. */
  readonly events: Readonly<Record<string, string>>;
}

export type Catalog = Readonly<Record<string, CatalogResource>>;

export const ACCOUNT: readonly Scope[] = ['Account'];

export function text(description: string, example: string): Field {
  return { type: 'string', description, examples: [example] };
}

export function oneOf(description: string, ...values: readonly [string, ...string[]]): Field {
  return { type: 'string', description, enum: values, examples: [values[0]] };
}

export function day(description: string, example: string): Field {
  return { type: 'string', format: 'date', description, examples: [example] };
}

export function count(description: string, example: number): Field {
  return { type: 'integer', description, examples: [example] };
}

/** The id of another resource. */
export function idOf(kind: string, description: string, example: string): Field {
  return { type: 'string', description, examples: [example], 'x-resource': kind };
}

export const AMOUNT: Field = {
  type: 'string',
  description: 'A decimal number, as text so that no cent is lost.',
  pattern: '^[0-9]{1,12}(\\.[0-9]{1,4})?$',
  examples: ['120.50'],
};

export const CURRENCY: Field = {
  type: 'string',
  description: 'ISO 4217.',
  pattern: '^[A-Z]{3}$',
  examples: ['EUR'],
};
