import { Document, isMap, visit } from 'yaml';
import {
  type Json,
  type OperationSpec,
  refTo,
  writtenComponents,
  writtenExamples,
  writtenOperations,
} from './files.ts';
import { refusalResponses, toOperation } from './operations.ts';
import {
  filterParameters,
  idParameters,
  resourceExamples,
  resourceOperations,
  resourceSchemas,
} from './resources.ts';
import { eventSchemas, webhooks } from './webhooks.ts';

const TAGS: Readonly<Record<string, string>> = {
  Payments: 'Payees, invoices, payables and the movement of money.',
  Finance: 'Statements, transactions and transfers of financial accounts.',
  Compliance: 'Checks, insurance, signatures, forms and files.',
  Platform: 'Accounts, identities, notifications, connections and operations.',
  Search: 'Live searches and frozen result sets.',
  Webhooks: 'Subscriptions to events and the log of their deliveries.',
  Events: 'What a subscriber receives.',
  Reference: 'This document.',
};

/** platform/openapi.yaml: what the catalog says, operations.yaml and components.yaml. */
export function platformDocument(): string {
  const content = {
    openapi: '3.1.0',
    info: {
      title: 'Payments Platform API',
      version: '3.0.0',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description:
        'What the platform serves, and what the gateway prices and validates with. `x-weir.cost` is the price of an ' +
        'operation in points; `x-weir.personOnly` marks what is counted for the Person instead of an Account.',
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    'x-weir': { validate: 'parameters' },
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: paths([...resourceOperations(), ...writtenOperations]),
    webhooks: webhooks(),
    components: components(),
  };
  // SnakeYAML reads 50 aliases at most, and parsers of YAML 1.1 take a plain date for a time.
  const document = new Document(content, { aliasDuplicateObjects: false, compat: 'yaml-1.1' });
  document.commentBefore =
    ' Made by `npm run docs` from platform/src/catalog and scripts/platform-openapi. Do not edit.';
  visit(document, {
    Map(_key, node) {
      if (node.items.length === 1 && node.has('$ref')) node.flow = true;
    },
    Seq(_key, node) {
      if (node.items.every((item) => !isMap(item))) node.flow = true;
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: true });
}

function paths(operations: readonly OperationSpec[]): Json {
  const items = new Map<string, Record<string, Json>>();
  for (const operation of operations) {
    const item = items.get(operation.path) ?? {};
    item[operation.method] = toOperation(operation);
    items.set(operation.path, item);
  }
  return Object.fromEntries([...items].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function components(): Json {
  const operations = [...resourceOperations(), ...writtenOperations];
  const kinds = [...new Set(operations.flatMap(({ list }) => (list ? [list] : [])))];
  const single = new Set(operations.flatMap(({ answer, body }) => [answer, body]));
  const examples: Json = { ...resourceExamples(), ...writtenExamples };
  const pages = kinds.map((kind) => [
    `${kind}List`,
    { data: [examples[kind]], pagination: { nextPageToken: '', totalSize: 1 } },
  ]);
  return {
    ...writtenComponents,
    parameters: { ...writtenComponents.parameters, ...filterParameters(), ...idParameters() },
    responses: refusalResponses(),
    schemas: {
      ...writtenComponents.schemas,
      ...resourceSchemas(),
      ...Object.fromEntries(kinds.map((kind) => [`${kind}List`, listSchema(kind)])),
      ...eventSchemas(),
    },
    examples: Object.fromEntries(
      [...Object.entries(examples).filter(([name]) => single.has(name)), ...pages].map(([name, value]) => [
        name,
        { value },
      ]),
    ),
  };
}

function listSchema(item: string): Json {
  return {
    type: 'object',
    required: ['data', 'pagination'],
    properties: {
      data: { type: 'array', items: refTo('schemas', item) },
      pagination: refTo('schemas', 'Pagination'),
    },
  };
}
