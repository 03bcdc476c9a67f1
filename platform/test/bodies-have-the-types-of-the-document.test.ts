import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../test/fixtures/gateway.ts';
import { ACCT_1, type Body, type Client, createClient } from './fixtures/client.ts';
import { quickest } from './fixtures/databases.ts';
import { type DocumentBody, type Json, operations } from './fixtures/document.ts';
import { startGatewayInFront } from './fixtures/gateway-in-front.ts';
import { usePlatform } from './fixtures/platform.ts';

/** A body with one value of a wrong type, and the name of that member. */
interface WrongBody {
  readonly field: string;
  readonly body: unknown;
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  integer: Number.isInteger,
  array: Array.isArray,
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
};

/** A valid value of each type as others write it, such as a number in quotes or one value instead of a list of one. */
function wrongValues(schema: Json, valid: unknown): unknown[] {
  const { type, allOf = [] } = schema as { type?: string; allOf?: Json[] };
  const isRight = TYPES[type ?? String(allOf[0]?.type)];
  if (!isRight) throw new Error(`this test knows no value that is not of ${JSON.stringify(schema)}`);
  const inner = Array.isArray(valid) ? valid[0] : [valid];
  const values = [5, 0, 10.1, true, false, null, '', '5', 'true', String(valid), [], {}, inner, [[valid]]];
  return values.filter((value) => !isRight(value));
}

/** Every body that differs from the example in the type of the whole, of one member, or of one item. */
function wrongBodies(schema: Json, valid: unknown, field = ''): WrongBody[] {
  const wrong = wrongValues(schema, valid).map((body) => ({ field: field || 'body', body }));
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>);
  const ofMembers = properties.flatMap(([name, property]) =>
    wrongBodies(property, (valid as Json)[name], field ? `${field}.${name}` : name).map((one) => ({
      ...one,
      body: { ...(valid as Json), [name]: one.body },
    })),
  );
  if (!Array.isArray(valid)) return [...wrong, ...ofMembers];
  const ofItems = wrongBodies(schema.items as Json, valid[0], `${field}.0`);
  return [...wrong, ...ofItems.map((one) => ({ ...one, body: [one.body, ...valid.slice(1)] }))];
}

const withBody = operations.flatMap(({ requestBody, ...operation }) =>
  requestBody ? [{ ...operation, requestBody }] : [],
);

const withoutBody = operations.filter(
  ({ method, requestBody }) => method !== 'GET' && requestBody === undefined,
);

/** The example with every optional member. */
function fullExample({ schema, example }: DocumentBody): Json {
  const properties = Object.entries(schema.properties as Record<string, Json>);
  const value = ({ type, allOf, enum: [one] = [] }: Json & { allOf?: Json[]; enum?: string[] }) =>
    (type ?? allOf?.[0]?.type) === 'integer' ? 60 : (one ?? 'text');
  return { ...Object.fromEntries(properties.map(([name, property]) => [name, value(property)])), ...example };
}

const platform = usePlatform(quickest);
const directory = mkdtempSync(join(tmpdir(), 'weir-document-'));
let gateway: TestGateway;
beforeAll(async () => {
  // The document as it ships has the gateway validate parameters alone.
  const shipped = readFileSync(new URL('../openapi.yaml', import.meta.url), 'utf8');
  const openapi = join(directory, 'openapi.yaml');
  writeFileSync(openapi, shipped.replace('validate: parameters', 'validate: body'));
  gateway = await startGatewayInFront(platform.url, { operations: { openapi, unlisted: 'reject' } });
});
afterAll(async () => {
  await gateway?.close();
  rmSync(directory, { recursive: true });
});

const callers: readonly [name: string, connect: () => Client][] = [
  ['the platform', () => platform.as(ACCT_1)],
  [
    'the gateway in front, if it validates bodies,',
    () => createClient(gateway.url, { authorization: 'Bearer person' }),
  ],
];

test.each(withoutBody)(
  'the platform refuses every body of $id but an empty object and null',
  async ({ method, path }) => {
    const send = (body: unknown) =>
      platform.as(ACCT_1).send(method, path.replaceAll(/\{\w+\}/g, 'any_1'), body);
    for (const body of [undefined, {}, null]) expect((await send(body)).status).toBe(404);
    for (const [field, body] of [
      ['surplus', { surplus: 1 }],
      ['body', [1]],
      ['body', 'text'],
    ] as const) {
      const { status, body: answer } = await send(body);
      expect([status, answer.errors.map((error) => error.field)]).toEqual([422, [field]]);
    }
  },
);

test('the platform names a member that JavaScript gives a meaning of its own', async () => {
  for (const { method, path } of operations.filter((operation) => operation.method !== 'GET')) {
    const url = platform.url + path.replaceAll(/\{\w+\}/g, 'any_1');
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const headers = { ...ACCT_1, 'content-type': 'application/json' };
      const response = await fetch(url, { method, headers, body: `{"${name}": {"prototype": {}}}` });
      const { errors } = (await response.json()) as Body;
      const named = errors?.some(({ field }) => field === name);
      expect([method, path, response.status, named]).toEqual([method, path, 422, true]);
    }
  }
});

const NO_BYTES = () => new ReadableStream({ start: (controller) => controller.close() });

test.each([
  ['text/plain', () => ''],
  ['application/x-www-form-urlencoded', () => ''],
  ['application/json', () => ''],
  [undefined, NO_BYTES],
])('an empty body with the type %s is no body', async (type, body) => {
  for (const { method, path } of withoutBody) {
    const url = platform.url + path.replaceAll(/\{\w+\}/g, 'any_1');
    const headers = { ...ACCT_1, ...(type && { 'content-type': type }) };
    const { status } = await fetch(url, { method, headers, body: body(), duplex: 'half' } as RequestInit);
    expect([method, path, status]).toEqual([method, path, 404]);
  }
});

describe.each(callers)('%s', (_, connect) => {
  test.each(withBody)('refuses every body of $id with a value of another type, and names it', async (one) => {
    const path = one.path.replaceAll(/\{\w+\}/g, 'any_1');
    const wrong = wrongBodies(one.requestBody.schema, fullExample(one.requestBody));
    expect(wrong.length).toBeGreaterThan(10);
    const answers = await Promise.all(
      wrong.map(async ({ field, body }) => {
        const answer = await connect().send(one.method, path, body);
        // The gateway writes `ids[0]`.
        const named = answer.body.errors?.map((error) => error.field.replaceAll(/\[(\d+)\]/g, '.$1'));
        const isNamed = named?.includes(field);
        return { field, body, status: answer.status, isNamed };
      }),
    );
    expect(answers.filter(({ status, isNamed }) => status !== 422 || !isNamed)).toEqual([]);
  });

  test('stores amounts digit by digit', async () => {
    const client = connect();
    for (const amount of ['10.10', '10.1000', '0.0001', '007.00', '999999999999.9999']) {
      const body = { payeeId: 'payee_1001', amount, currency: 'EUR' };
      const created = await client.send('POST', '/v3/payments/invoices', body);
      expect(created).toMatchObject({ status: 201, body: { amount } });
      const read = await client.get(`/v3/payments/invoices/${created.body.id}`);
      expect(read.body).toMatchObject({ amount });
    }
  });

  test('reads numbers in the query', async () => {
    const { body } = await connect().get('/v3/payments/payees?page[size]=7');
    expect(body.data.length).toBe(7);
  });
});
