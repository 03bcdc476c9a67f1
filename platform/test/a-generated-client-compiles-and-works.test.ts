import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestGateway } from '../../test/fixtures/gateway.ts';
import { quickest } from './fixtures/databases.ts';
import { startGatewayInFront } from './fixtures/gateway-in-front.ts';
import { PYTHON, testWith, withTools } from './fixtures/generators.ts';
import { usePlatform } from './fixtures/platform.ts';

const HOOKS = resolve('platform/test/fixtures/typescript-for-generators.mjs');
const OPTIONS = ['--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];

/** What each program prints, which is what an integrator writes: nothing is cast. */
const DONE = {
  hasNext: true,
  operation: 'Completed',
  event: 'Payable.Paid',
  amount: '12.50',
  status: 'Paid',
  code: 'ValidationError',
};

const platform = usePlatform(quickest);
let gateway: TestGateway;
let directory: string;
beforeAll(async () => {
  gateway = await startGatewayInFront(platform.url);
  directory = mkdtempSync(join(tmpdir(), 'weir-client-'));
  symlinkSync(resolve('node_modules'), join(directory, 'node_modules'));
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
  // As an integrator gets it: from the gateway.
  const document = await gateway.send('GET', '/v3/openapi.yaml', { token: null });
  writeFileSync(join(directory, 'openapi.yaml'), await document.text());
});
afterAll(() => gateway?.close());

/** Runs a program in the directory. @returns what it prints */
async function run(program: string, args: readonly string[]): Promise<string> {
  const options = { cwd: directory, env: { ...withTools(), GOFLAGS: '-mod=mod' }, maxBuffer: 1e8 };
  const { stdout } = await promisify(execFile)(program, args, options).catch(
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`${program} failed: ${error.stdout}${error.stderr}`);
    },
  );
  return stdout;
}

const copy = (from: string, to: string) =>
  copyFileSync(resolve('platform/test/fixtures/integration', from), join(directory, to));

test('the document has nothing that a generator is known to refuse', () => {
  const text = readFileSync('platform/openapi.yaml', 'utf8');
  // SnakeYAML refuses more than 50 aliases.
  expect(text.match(/ [&*]a\d+\b/g)).toBeNull();
  // YAML 1.1 reads a plain date as a time, which is not JSON.
  expect(text.match(/: \d{4}-\d\d-\d\d.*/)).toBeNull();
  // Generators write a type that does not parse.
  expect(text).not.toMatch(/properties: \{\s*\}/);
});

test('openapi-typescript with its defaults makes types that compile, and the client works through the gateway', async () => {
  copy('typescript.txt', 'client.ts');
  const generator = resolve('node_modules/openapi-typescript/bin/cli.js');
  await run(process.execPath, ['--import', HOOKS, generator, 'openapi.yaml', '--output', 'api.d.ts']);
  await run(process.execPath, [resolve('node_modules/typescript/bin/tsc'), ...OPTIONS, 'client.ts']);
  expect(JSON.parse(await run(process.execPath, ['client.js', gateway.url, 'person']))).toEqual(DONE);
}, 180_000);

testWith(
  ['openapi-python-client'],
  'openapi-python-client makes every operation and event, and the client works',
  async () => {
    copy('integration.py', 'integration.py');
    const made = await run('openapi-python-client', [
      'generate',
      '--path',
      'openapi.yaml',
      '--meta',
      'none',
      '--output-path',
      'api',
    ]);
    // The document itself is YAML, which the generator does not read.
    const [, ...warnings] = made
      .split(/^(?=WARNING|Unable|Cannot)/m)
      .filter((part) => !part.includes('application/yaml'));
    expect(warnings.filter((text) => !text.startsWith('WARNING parsing GET /v3/openapi.yaml'))).toEqual([]);
    expect(JSON.parse(await run(PYTHON, ['integration.py', gateway.url, 'person']))).toEqual(DONE);
  },
);

testWith(['oapi-codegen', 'go'], 'oapi-codegen makes a client that compiles and works', async () => {
  copy('integration.go.txt', 'main.go');
  copy('oapi-codegen.yaml', 'oapi-codegen.yaml');
  writeFileSync(join(directory, 'go.mod'), 'module integration\n\ngo 1.24\n');
  await run('oapi-codegen', ['-config', 'oapi-codegen.yaml', 'openapi.yaml']);
  await run('go', ['get', 'github.com/oapi-codegen/runtime@v1.8.0']);
  await run('go', ['mod', 'tidy']);
  await run('go', ['build', '-o', 'integration', '.']);
  expect(JSON.parse(await run(join(directory, 'integration'), [gateway.url, 'person']))).toEqual(DONE);
});
