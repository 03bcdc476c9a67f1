import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ApiFolder, apiFolder, openapi } from '../fixtures/api-files.ts';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

/** Each is quadratic or exponential where a validator follows the words of the schema: the tests below would time out. */
const SCHEMAS = {
  Tree: {
    anyOf: ['a', 'b', 'c'].map((required) => ({
      allOf: [
        { properties: { next: { $ref: '#/components/schemas/Tree' } } },
        { type: 'object', required: [required] },
      ],
    })),
  },
  Unique: { uniqueItems: true },
  Text: { type: 'string', pattern: '^(a+)+$' },
  Url: { type: 'string', format: 'url' },
};
const operation = (schema: string) =>
  JSON.stringify({
    'x-weir': { validate: 'body' },
    requestBody: { content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } } },
  });
const PATHS = [
  ...Object.keys(SCHEMAS).map((schema) => `/${schema}: { post: ${operation(schema)} }`),
  '/text: { get: { parameters: [{ name: q, in: query, schema: { type: string, pattern: "^(a|aa)+$" } }] } }',
  '/files/{name}-{version}-{build}.{format}: { get: {} }',
  '/reports/{name}-{from}-{to}.csv: { get: {} }',
].join('\n');

let folder: ApiFolder;
let gateway: TestGateway;
beforeAll(async () => {
  const head = `components: { schemas: ${JSON.stringify(SCHEMAS)} }\n`;
  folder = await apiFolder({ 'openapi.yaml': openapi(PATHS, '3.1.0', head) });
  const operations = { openapi: join(folder.path, 'openapi.yaml'), maxBodyBytes: 2 ** 21 };
  gateway = await startGateway({ limits: PLENTY, settings: { operations } });
});
afterAll(async () => {
  await gateway.close();
  await folder.remove();
});

const items = Array.from({ length: 40_000 }, (_, index) => ({ index }));

it.each([
  ['Unique', 'different items', JSON.stringify(items), 200],
  ['Unique', 'items whose last two are equal', JSON.stringify([...items, { index: 39_999 }]), 422],
  ['Text', 'a text that matches', JSON.stringify('a'.repeat(100_000)), 200],
  ['Text', 'a text that does not match', JSON.stringify(`${'a'.repeat(100_000)}!`), 422],
  ['Url', 'a long URL', JSON.stringify(`http://${'a:@'.repeat(100_000)} `), 422],
  ['Tree', 'a tree that 3 to the 60th branches may fit', `${'{"next":'.repeat(60)}{}${'}'.repeat(60)}`, 422],
  ['Tree', 'a tree deeper than the stack', `${'{"next":'.repeat(1e5)}1${'}'.repeat(1e5)}`, 422],
  ['Unique', 'lists deeper than the stack', `${'['.repeat(1e5)}1${']'.repeat(1e5)}`, 422],
])('%s: %s', async (schema, _, body, status) => {
  const answer = await gateway.send('POST', `/${schema}`, {
    headers: { 'Content-Type': 'application/json' },
    body,
  });
  expect([answer.status, answer.headers.has('RateLimit')]).toEqual([status, true]);
});

it('a query', async () => {
  const send = (text: string) => gateway.send('GET', `/text?q=${text}`);
  expect((await send('a'.repeat(12_000))).status).toBe(200);
  expect((await send(`${'a'.repeat(12_000)}!`)).status).toBe(422);
});

it.each(['files', 'reports'])(
  'a path under /%s whose segment has several parameters, of a client without a token',
  async (resource) => {
    const path = `/${resource}/${'a-'.repeat(4_000)}csv`;
    expect((await gateway.send('GET', path, { token: null })).status).toBe(401);
    expect((await gateway.send('GET', `${path}.csv`)).status).toBe(200);
  },
);
