/** The scope types that can receive an event (contract section 6.2). */
export type Scope = 'Account' | 'Organization' | 'Person';

export type Domain = 'payments' | 'finance' | 'compliance' | 'platform';

/** A member of a resource, as JSON Schema with an example. The demo data uses the examples. */
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

/** The description of one kind of resource (contract sections 2.1 and 6.3). */
export interface CatalogResource {
  readonly domain: Domain;
  /** One sentence that describes a resource of this kind. */
  readonly what: string;
  /** The scopes that receive its events and may read it. */
  readonly scopes: readonly Scope[];
  /** Events go to the payer's and the payee's Account, as two events with the same `occurrenceId`. Both may read it. */
  readonly bothParties?: true;
  readonly moneyMovement?: true;
  /** Only a Person may read it, and requests are charged to the Person. */
  readonly personOnly?: true;
  /** A stale page token restarts the list (contract section 4.1 rule 6). */
  readonly restartsList?: true;
  /** A Person reads it where it acts for its Account alone, although the Person receives its events everywhere. */
  readonly keptToAccount?: true;
  /** Every Account of the Organization may read it, although only its own Account receives the events. */
  readonly sharedInOrganization?: true;
  /** Prefix of its ids. Default: the kind in lower case. */
  readonly idPrefix?: string;
  /** The kind of the resource that `parent` refers to. */
  readonly parent?: string;
  /** Members besides id, status, externalId, parent, times and parties. The contract defines none; these are the platform's own. */
  readonly fields: Readonly<Record<string, Field>>;
  /** The names of the optional `fields`. */
  readonly optional?: readonly string[];
  /** Fields that lists can be filtered by, besides status, externalId and createdAt. */
  readonly filters?: readonly string[];
  /** Description of each event part. Empty if the events of the resource are not published. */
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
