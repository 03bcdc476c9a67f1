import { catalog, exampleFields, idPrefixOf, namesOf } from '../../platform/src/catalog/catalog.ts';
import type { CatalogResource, Field } from '../../platform/src/catalog/resource.ts';
import { timestampName } from '../../platform/src/events/transitions.ts';
import { type Json, type OperationSpec, refTo } from './files.ts';

const COMMON_FILTERS = ['statusEq', 'externalIdEq', 'createdAtGte', 'createdAtLt'];
const AT = '2026-01-05T09:00:00.000Z';
const dateTime = { type: 'string', format: 'date-time' };

/** The list and the read of every kind. */
export function resourceOperations(): OperationSpec[] {
  return Object.entries(catalog).flatMap(([kind, entry]): OperationSpec[] => {
    const names = namesOf(kind, entry);
    const common = {
      method: 'get' as const,
      tag: `${entry.domain.charAt(0).toUpperCase()}${entry.domain.slice(1)}`,
      ...(entry.personOnly && { personOnly: true }),
    };
    const query = ['pageSize', 'pageToken', ...COMMON_FILTERS, ...filterNames(kind, entry)];
    const restart = entry.restartsList ? ' A stale page token starts again.' : '';
    return [
      {
        ...common,
        path: names.path,
        id: names.list,
        summary: `The ${names.plural} that the caller sees, oldest first.${restart}`,
        query,
        list: kind,
      },
      {
        ...common,
        path: `${names.path}/{${names.parameter}}`,
        id: names.read,
        summary: `${article(names.singular)} ${names.singular}.`,
        answer: kind,
      },
    ];
  });
}

function filterNames(kind: string, { filters = [], parent, bothParties }: CatalogResource): string[] {
  if (kind === 'Operation') return ['operationTypeEq'];
  const fields = [...filters, ...(parent ? ['parentId'] : []), ...(bothParties ? ['accountId'] : [])];
  return fields.map((field) => `${field}Eq`);
}

/** The filters by a kind's own fields, as `components.parameters`. */
export function filterParameters(): Json {
  const fields = Object.entries(catalog).flatMap(([kind, entry]) =>
    filterNames(kind, entry).filter((name) => name !== 'operationTypeEq'),
  );
  return Object.fromEntries(
    [...new Set(fields)].map((name) => {
      const schema = refTo('schemas', 'Id');
      return [name, { name: `filter[${name.slice(0, -'Eq'.length)}][eq]`, in: 'query', schema }];
    }),
  );
}

/** The path parameters of the kinds. */
export function idParameters(): Json {
  const names = [
    ...Object.entries(catalog).map(([kind, entry]) => namesOf(kind, entry).parameter),
    ...['subscriptionId', 'deliveryId', 'eventId'],
  ];
  return Object.fromEntries(
    names.map((name) => [name, { name, in: 'path', required: true, schema: refTo('schemas', 'Id') }]),
  );
}

/** A schema for every kind but operations, which have one of their own. */
export function resourceSchemas(): Json {
  const kinds = Object.entries(catalog).filter(([kind]) => kind !== 'Operation');
  return Object.fromEntries(kinds.map(([kind, entry]) => [kind, schemaOf(entry)]));
}

function schemaOf(entry: CatalogResource): Json {
  const { what, fields, optional = [], parent, events } = entry;
  const always = Object.keys(fields).filter((name) => !optional.includes(name));
  return {
    type: 'object',
    description: what,
    required: [
      ...['id', 'status', ...always, ...(parent ? ['parent'] : [])],
      ...(isOfAccountAlone(entry) ? ['accountId'] : []),
      ...['createdAt', 'updatedAt', 'events'],
    ],
    properties: {
      id: refTo('schemas', 'Id'),
      status: { type: 'string' },
      externalId: refTo('schemas', 'ExternalId'),
      ...Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)])),
      ...(parent && { parent: refTo('schemas', 'Parent') }),
      ...Object.fromEntries(partyNames(entry).map((name) => [name, refTo('schemas', 'Id')])),
      createdAt: dateTime,
      updatedAt: dateTime,
      events: eventTimes(Object.keys(events)),
    },
  };
}

/** Without parts, a reference alone: generators make no type of an `allOf` with an empty member. */
function eventTimes(parts: readonly string[]): Json {
  const known = refTo('schemas', 'EventTimes');
  if (parts.length === 0) return known;
  const properties = Object.fromEntries(parts.map((part) => [timestampName(part), dateTime]));
  return { allOf: [known, { type: 'object', properties }] };
}

function isOfAccountAlone({ scopes }: CatalogResource): boolean {
  return scopes.length === 1 && scopes[0] === 'Account';
}

function partyNames({ scopes, bothParties, sharedInOrganization }: CatalogResource): string[] {
  return [
    ...(scopes.includes('Account') || scopes.includes('Person') ? ['accountId'] : []),
    ...(bothParties ? ['counterpartyAccountId'] : []),
    ...(scopes.includes('Organization') || sharedInOrganization ? ['organizationId'] : []),
    ...(scopes.includes('Person') ? ['personId'] : []),
  ];
}

/** The field, with the shared schema for what is not its own. */
function fieldSchema({ 'x-resource': kind, ...field }: Field): Json {
  return kind
    ? { ...field, description: `${field.description} The id of a resource of the kind ${kind}.` }
    : field;
}

/** An example of every kind but operations. */
export function resourceExamples(): Json {
  const kinds = Object.entries(catalog).filter(([kind]) => kind !== 'Operation');
  return Object.fromEntries(kinds.map(([kind, entry]) => [kind, exampleOf(kind, entry)]));
}

function exampleOf(kind: string, entry: CatalogResource): Json {
  const id = `${idPrefixOf(kind)}_1001`;
  return {
    id,
    status: 'Created',
    externalId: `erp-${id}`,
    ...exampleFields(entry),
    ...(entry.parent && { parent: { type: entry.parent, id: `${idPrefixOf(entry.parent)}_1001` } }),
    ...(isOfAccountAlone(entry) && { accountId: 'acct_1' }),
    createdAt: AT,
    updatedAt: AT,
    events: { createdAt: AT },
  };
}

function article(noun: string): string {
  return /^[aeiou]/.test(noun) && !noun.startsWith('one') ? 'An' : 'A';
}
