/**
 * What it costs to match an operation and to hold a request against its document, in microseconds a request:
 * `tsx bench/operations/main.ts`. Medians of rounds in turn, on a document of 1,000 operations.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { parse } from '../../src/config/reader/parse.ts';
import { settingsSchema } from '../../src/config/settings/settings.ts';
import type { FieldValues } from '../../src/domain/field-name.ts';
import { Refusal } from '../../src/domain/problems.ts';
import { FieldSection } from '../../src/http/message/head/field-section.ts';
import { OperationFiles } from '../../src/operations/operation-files.ts';
import { OperationTable } from '../../src/stages/match.ts';
import type { Operation } from '../../src/stages/request-context.ts';
import { type Validated, validate } from '../../src/stages/validate.ts';
import { processorName } from '../lab/machine.ts';
import { median } from '../measure/lineup.ts';
import { publishSection } from '../report/section.ts';

const ROUNDS = 9;
const ROUND_MS = 150;
const RESOURCES = 200;

interface Contestant {
  readonly name: string;
  /** One request, of many that differ. */
  request(index: number): unknown;
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

async function loadPrices(): Promise<{ prices: OperationTable; count: number; loadMs: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  const openapi = join(folder, 'openapi.json');
  writeFileSync(openapi, JSON.stringify(document(), null, 2));
  const { operations: settings } = parse(settingsSchema, '', 'weir.yaml').value;
  const startMs = performance.now();
  const operations = await new OperationFiles({ ...settings, openapi }, 'weir.yaml').load();
  const prices = new OperationTable(operations, 'charge');
  const loadMs = performance.now() - startMs;
  rmSync(folder, { recursive: true });
  return { prices, count: operations.length, loadMs };
}

const { prices, count, loadMs } = await loadPrices();

function found(method: string, path: string): Operation {
  const operation = prices.find(method, path);
  if (operation === 'free' || operation instanceof Refusal || !operation.listed) {
    throw new Error(`${method} ${path} is not of this benchmark`);
  }
  return operation;
}

const resource = (index: number) => `/v3/domain-${(index % RESOURCES) % 10}/resources-${index % RESOURCES}`;

/** As much of a request as a validation looks at. */
function requestWith(headers: FieldValues, body: string): Validated {
  const fields = FieldSection.of(Object.entries(headers).flatMap(([name, value = '']) => [name, value]));
  const field = (name: string) => headers[name];
  const head = { method: 'GET', target: '/', httpVersion: '1.1', fields, headers, field };
  return { head, body: undefined, readBody: () => Readable.from([Buffer.from(body)]) };
}

function validation(name: string, search: (index: number) => string, isValid: boolean): Contestant {
  const operations = Array.from({ length: RESOURCES }, (_, index) => found('GET', resource(index)));
  const request = requestWith({ host: 'api.example.com' }, '');
  return {
    name,
    request(index) {
      const operation = operations[index % RESOURCES] ?? found('GET', resource(index));
      const validated = validate(operation, { path: resource(index), search: search(index) }, request);
      if (validated instanceof Refusal === isValid)
        throw new Error(`${name}: ${search(index)} was judged wrongly`);
      return validated;
    },
  };
}

function bodyValidation(lines: number): Contestant {
  const body = JSON.stringify({
    name: 'x',
    lines: Array.from({ length: lines }, () => ({ amount: 5, currency: 'EUR' })),
  });
  const headers = { 'content-type': 'application/json', 'content-length': `${body.length}` };
  const operation = found('POST', resource(0));
  return {
    name: `validate a JSON body of ${body.length} bytes, read included`,
    async request() {
      const validated = await validate(
        operation,
        { path: resource(0), search: '' },
        requestWith(headers, body),
      );
      if (validated !== undefined) throw new Error('the body was refused');
    },
  };
}

const CONTESTANTS: readonly Contestant[] = [
  {
    name: `match one of ${count} operations, no parameter`,
    request: (index) => found('GET', resource(index)),
  },
  {
    name: `match one of ${count} operations, one parameter`,
    request: (index) => found('GET', `${resource(index)}/id_${index}`),
  },
  {
    name: `match one of ${count} operations, parameter inside`,
    request: (index) => found('POST', `${resource(index)}/id_${index}/open`),
  },
  validation('validate a list without a query', () => '', true),
  validation('validate a list with page[size]', (index) => `?page[size]=${1 + (index % 100)}`, true),
  validation(
    'validate a list with four parameters, brackets encoded',
    (index) =>
      `?page%5Bsize%5D=${1 + (index % 100)}&page%5Btoken%5D=abcdef&filter%5Bstatus%5D%5Beq%5D=Activated&filter%5BcreatedAt%5D%5Bgte%5D=2026-11-20T10:00:00Z`,
    true,
  ),
  validation('refuse a list with two wrong parameters', () => '?page[size]=101&pageSize=5', false),
  bodyValidation(25),
];

async function measureRoundUs({ request }: Contestant): Promise<number> {
  const startMs = performance.now();
  let requests = 0;
  while (performance.now() - startMs < ROUND_MS) {
    for (let index = 0; index < RESOURCES; index++) {
      const outcome = request(requests + index);
      if (outcome instanceof Promise) await outcome;
    }
    requests += RESOURCES;
  }
  return ((performance.now() - startMs) * 1000) / requests;
}

const rounds = new Map<string, number[]>(CONTESTANTS.map(({ name }) => [name, []]));
for (const contestant of CONTESTANTS) await measureRoundUs(contestant);
for (let round = 0; round < ROUNDS; round++) {
  for (const contestant of CONTESTANTS) rounds.get(contestant.name)?.push(await measureRoundUs(contestant));
}

const rows = [...rounds].map(
  ([name, values]) => `| ${name} | ${median(values).toFixed(2)} | ${Math.min(...values).toFixed(2)} |`,
);
publishSection('operations', [
  '## Matching and validating',
  '',
  `${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${availableParallelism()} cores of ${processorName()}, machine load ${loadavg()[0]?.toFixed(1)}: on a busy machine the least is nearer to the truth.`,
  `\`npx tsx bench/operations/main.ts\`: ${ROUNDS} rounds of ${ROUND_MS} ms in turn; reading and compiling the document took ${loadMs.toFixed(0)} ms.`,
  '',
  '| | µs a request, median | least |',
  '| --- | --- | --- |',
  ...rows,
]);
