import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { parse } from '../../src/config/reader/parse-file.ts';
import { settingsSchema } from '../../src/config/settings/settings.ts';
import type { FieldValues } from '../../src/domain/field-name.ts';
import { Refusal } from '../../src/domain/problems.ts';
import { FieldSection } from '../../src/http/message/head/field-section.ts';
import { OperationFiles } from '../../src/operations/operation-files.ts';
import { OperationTable } from '../../src/stages/match.ts';
import type { Operation } from '../../src/stages/request-context.ts';
import { validate } from '../../src/stages/validate.ts';
import type { Bench } from '../lab/bench.ts';
import { median, usPerCall } from '../lab/turns.ts';
import { table } from '../report/section.ts';

const RESOURCES = 200;

interface Case {
  readonly name: string;
  /** One request, of many that differ. */
  readonly request: (index: number) => unknown;
}

/** Measures on a document of 1,000 operations. */
export async function measureOperations(bench: Bench): Promise<readonly string[]> {
  const startMs = performance.now();
  const operations = await loadOperations(join(bench.folder, 'openapi.json'));
  const loadMs = performance.now() - startMs;
  const cases = casesOf(new OperationTable(operations, 'charge'), operations.length);
  for (const { request } of cases) await usPerCall(request);
  const rounds = await bench.inTurn(cases, ({ request }) => usPerCall(request));
  const rows = Object.entries(rounds).map(([name, values]) => [
    name,
    median(values).toFixed(2),
    Math.min(...values).toFixed(2),
  ]);
  return [
    `On a busy machine the least is nearer to the truth. ${bench.rounds} rounds of 150 ms in turn; reading and compiling the document took ${loadMs.toFixed(0)} ms.`,
    '',
    ...table(['', 'µs a request, median', 'least'], rows),
  ];
}

const query = (name: string, schema: object) => ({ name, in: 'query', schema });
const LIST = [
  query('page[size]', { type: 'integer', minimum: 1, maximum: 100 }),
  query('page[token]', { type: 'string', maxLength: 2048 }),
  query('filter[status][eq]', { type: 'string', maxLength: 64 }),
  query('filter[createdAt][gte]', { type: 'string', format: 'date-time' }),
];
const ID = {
  name: 'id',
  in: 'path',
  required: true,
  schema: { type: 'string', pattern: '^[A-Za-z0-9._-]+$' },
};
const BODY = {
  type: 'object',
  required: ['name', 'lines'],
  additionalProperties: false,
  properties: {
    name: { type: 'string', maxLength: 255 },
    lines: {
      type: 'array',
      items: {
        type: 'object',
        required: ['amount', 'currency'],
        properties: {
          amount: { type: 'integer', minimum: 1 },
          currency: { type: 'string', pattern: '^[A-Z]{3}$' },
        },
      },
    },
  },
};

/** Five operations on each of 200 resources, as real APIs have them. */
function document(): object {
  const responses = { 200: { description: 'ok' } };
  const content = { 'application/json': { schema: BODY } };
  const paths: Record<string, object> = {};
  for (let index = 0; index < RESOURCES; index++) {
    const path = `/v3/domain-${index % 10}/resources-${index}`;
    paths[path] = {
      get: { parameters: LIST, responses },
      post: { 'x-weir': { cost: 5, validate: 'body' }, requestBody: { required: true, content }, responses },
    };
    paths[`${path}/{id}`] = { parameters: [ID], get: { responses }, patch: { responses } };
    paths[`${path}/{id}/open`] = { parameters: [ID], post: { responses } };
  }
  return { openapi: '3.1.0', info: { title: 'bench', version: '1' }, paths };
}

async function loadOperations(openapi: string) {
  writeFileSync(openapi, JSON.stringify(document(), null, 2));
  const { operations: settings } = parse(settingsSchema, '', 'weir.yaml').value;
  return new OperationFiles({ ...settings, openapi }, 'weir.yaml').load();
}

function found(operations: OperationTable, method: string, path: string): Operation {
  const operation = operations.find(method, path);
  if (operation === 'free' || operation instanceof Refusal || !operation.listed) {
    throw new Error(`${method} ${path} is not of this benchmark`);
  }
  return operation;
}

const resource = (index: number) => `/v3/domain-${(index % RESOURCES) % 10}/resources-${index % RESOURCES}`;

/** As much of a request as a validation looks at. */
function requestWith(headers: FieldValues, body: string): Parameters<typeof validate>[2] {
  const fields = FieldSection.of(Object.entries(headers).flatMap(([name, value = '']) => [name, value]));
  const field = (name: string) => headers[name];
  const head = { method: 'GET', target: '/', httpVersion: '1.1', fields, headers, field };
  return { head, body: undefined, readBody: () => Readable.from([Buffer.from(body)]) };
}

function casesOf(operations: OperationTable, count: number): readonly Case[] {
  const match = (what: string, method: string, rest: (index: number) => string): Case => ({
    name: `match one of ${count} operations, ${what}`,
    request: (index) => found(operations, method, resource(index) + rest(index)),
  });
  const lists = Array.from({ length: RESOURCES }, (_, index) => found(operations, 'GET', resource(index)));
  const validation = (name: string, search: (index: number) => string, isValid = true): Case =>
    queryCase(name, lists, search, isValid);
  return [
    match('no parameter', 'GET', () => ''),
    match('one parameter', 'GET', (index) => `/id_${index}`),
    match('parameter inside', 'POST', (index) => `/id_${index}/open`),
    validation('validate a list without a query', () => ''),
    validation('validate a list with page[size]', (index) => `?page[size]=${1 + (index % 100)}`),
    validation(
      'validate a list with four parameters, brackets encoded',
      (index) =>
        `?page%5Bsize%5D=${1 + (index % 100)}&page%5Btoken%5D=abcdef&filter%5Bstatus%5D%5Beq%5D=Activated&filter%5BcreatedAt%5D%5Bgte%5D=2026-11-20T10:00:00Z`,
    ),
    validation('refuse a list with two wrong parameters', () => '?page[size]=101&pageSize=5', false),
    bodyCase(found(operations, 'POST', resource(0)), 25),
  ];
}

function queryCase(
  name: string,
  lists: readonly Operation[],
  search: (index: number) => string,
  isValid: boolean,
): Case {
  const request = requestWith({ host: 'api.example.com' }, '');
  return {
    name,
    request(index) {
      const operation = lists[index % RESOURCES];
      if (operation === undefined) throw new Error('there is no such list');
      const validated = validate(operation, { path: resource(index), search: search(index) }, request);
      if (validated instanceof Refusal === isValid)
        throw new Error(`${name}: ${search(index)} was judged wrongly`);
      return validated;
    },
  };
}

function bodyCase(operation: Operation, lines: number): Case {
  const body = JSON.stringify({
    name: 'x',
    lines: Array.from({ length: lines }, () => ({ amount: 5, currency: 'EUR' })),
  });
  const headers = { 'content-type': 'application/json', 'content-length': `${body.length}` };
  const target = { path: resource(0), search: '' };
  return {
    name: `validate a JSON body of ${body.length} bytes, read included`,
    async request() {
      const validated = await validate(operation, target, requestWith(headers, body));
      if (validated !== undefined) throw new Error('the body was refused');
    },
  };
}
