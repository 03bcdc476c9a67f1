import { execFile } from 'node:child_process';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestGateway } from '../fixtures/gateway.ts';
import { inMemory } from './fixtures/databases.ts';
import { startGatewayInFront } from './fixtures/gateway-in-front.ts';
import { usePlatform } from './fixtures/platform.ts';

const run = promisify(execFile);
const HOOKS = resolve('test/platform/fixtures/typescript-for-generators.mjs');
const OPTIONS = ['--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];

/** What an integrator writes against the generated types: nothing is cast, nothing is `any`. */
const PROGRAM = `
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

const [, , baseUrl = '', token = ''] = process.argv;
const client = createClient<paths>({ baseUrl, headers: { Authorization: \`Bearer \${token}\` } });

const page = await client.GET('/v3/payments/payees', { params: { query: { 'page[size]': 2 } } });
if (page.error) throw new Error(page.error.detail);
const id: string = page.data.data[0].id;
const next: string = page.data.pagination.nextPageToken;

const read = await client.GET('/v3/payments/payees/{payeeId}', { params: { path: { payeeId: id } } });
if (read.error) throw new Error(read.error.detail);
const name: string = read.data.name;

const made = await client.POST('/v3/payments/payables', {
  params: { header: { 'Idempotency-Key': 'generated-1' } },
  body: { payeeId: id, amount: '12.50', currency: 'EUR' },
});
if (made.error) throw new Error(made.error.detail);
const amount: string = made.data.amount;

const refused = await client.POST('/v3/payments/payees', { body: { name: '' } });
const code: string | undefined = refused.error?.code;

// @ts-expect-error: there is no such parameter
await client.GET('/v3/payments/payees', { params: { query: { limit: 2 } } });

/** As a webhook handler would. */
export function amountOf(event: components['schemas']['Invoice.DepositConfirmed']): string {
  return \`\${event.type} \${event.data.id} \${event.confirmation.reference}\`;
}

console.log(JSON.stringify({ id, hasNext: next !== '', name, amount, code, status: refused.response.status }));
`;

const platform = usePlatform(inMemory);
let gateway: TestGateway;
let directory: string;
beforeAll(async () => {
  gateway = await startGatewayInFront(platform.url);
  directory = mkdtempSync(join(tmpdir(), 'weir-client-'));
  symlinkSync(resolve('node_modules'), join(directory, 'node_modules'));
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(directory, 'client.ts'), PROGRAM);
  // As an integrator gets it: from the gateway.
  const document = await gateway.send('GET', '/v3/openapi.yaml', { token: null });
  writeFileSync(join(directory, 'openapi.yaml'), await document.text());
});
afterAll(() => gateway?.close());

test('openapi-typescript with its defaults makes types that compile, and the client works through the gateway', async () => {
  const generator = resolve('node_modules/openapi-typescript/bin/cli.js');
  const inDirectory = { cwd: directory };
  await run(
    process.execPath,
    ['--import', HOOKS, generator, 'openapi.yaml', '--output', 'api.d.ts'],
    inDirectory,
  );
  const compiler = resolve('node_modules/typescript/bin/tsc');
  const compiled = await run(process.execPath, [compiler, ...OPTIONS, 'client.ts'], inDirectory).catch(
    (error: { stdout: string }) => error,
  );
  expect(compiled.stdout).toBe('');
  const { stdout } = await run(process.execPath, ['client.js', gateway.url, 'person'], inDirectory);
  expect(JSON.parse(stdout)).toEqual({
    id: 'payee_1001',
    hasNext: true,
    name: expect.any(String),
    amount: '12.50',
    code: 'ValidationError',
    status: 422,
  });
}, 180_000);
