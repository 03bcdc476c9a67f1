import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect } from 'vitest';
import type { TestGateway } from '../../test/fixtures/gateway.ts';
import { quickest } from './fixtures/databases.ts';
import { startGatewayInFront } from './fixtures/gateway-in-front.ts';
import { testWith, withTools } from './fixtures/generators.ts';
import { usePlatform } from './fixtures/platform.ts';

const CHECKS = [
  ...['not_a_server_error', 'status_code_conformance', 'content_type_conformance'],
  ...['response_headers_conformance', 'response_schema_conformance'],
];

const platform = usePlatform(quickest);
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGatewayInFront(platform.url);
});
afterAll(() => gateway?.close());

testWith(
  ['schemathesis'],
  'Schemathesis meets no server error, and no response that the document does not have',
  async () => {
    const args = [
      ...['run', resolve('platform/openapi.yaml'), '--url', gateway.url],
      ...['--header', 'Authorization: Bearer person', '--checks', CHECKS.join(',')],
      ...['--phases', 'examples,coverage,fuzzing', '--mode', 'all', '--max-examples', '3'],
      // The same requests in every run.
      ...['--seed', '1', '--generation-database', 'none', '--no-color', '--continue-on-failure'],
    ];
    const cwd = mkdtempSync(join(tmpdir(), 'weir-schemathesis-'));
    const options = { cwd, env: withTools(), maxBuffer: 1e8 };
    const failed = await promisify(execFile)('schemathesis', args, options).then(
      () => '',
      ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
    );
    expect(failed).toBe('');
  },
);
