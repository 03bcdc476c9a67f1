import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { DECISIONS } from '../fixtures/decisions.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

const TOKEN = 'a-token-of-the-worker';
const JOB = { method: 'GET', path: '/v3/things', limits: ['jobs'] };

let folder: string;
let gateway: TestGateway;
let whenAdmitted: (question: object, work: () => unknown) => Promise<unknown>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-worker-'));
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, TOKEN);
  gateway = await startGateway({
    settings: { decisions: { ...DECISIONS, tokenFile } },
    limits: { limits: { jobs: { per: 'account', requests: 2, window: '1s' } } },
  });
  vi.stubEnv('WEIR_URL', gateway.decisionsUrl);
  vi.stubEnv('WEIR_DECISIONS_TOKEN', TOKEN);
  // The example reads its settings once, and another file of this worker may have imported it.
  ({ whenAdmitted } = await import(`${process.cwd()}/examples/decide/worker.mjs?again`));
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await gateway.close();
  rmSync(folder, { recursive: true });
});

it('the example for a job queue does each job once its Account has room for it', async () => {
  const startMs = performance.now();
  const doneMs: number[] = [];
  const jobs = Array.from({ length: 3 }, () =>
    whenAdmitted({ account: 'acct_3', ...JOB }, () => doneMs.push(performance.now() - startMs)),
  );
  await Promise.all(jobs);
  expect(doneMs).toHaveLength(3);
  // No second has room for three of them.
  expect(doneMs[2]).toBeGreaterThan(1_000);
});

it('it waits while Weir does not answer', async () => {
  const answers: RequestListener[] = [
    (request) => request.socket.destroy(),
    (_, response) => response.writeHead(502).end('<html>'),
    (_, response) => response.end('{"allowed":false,"status":503,"retryAfterSeconds":0}'),
    (_, response) => response.end('{"allowed":true,"status":200}'),
  ];
  const away = createServer((request, response) => answers.shift()?.(request, response));
  await once(away.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void away.close());
  vi.stubEnv('WEIR_URL', `http://127.0.0.1:${(away.address() as AddressInfo).port}`);
  const worker = await import(`${process.cwd()}/examples/decide/worker.mjs?away`);
  expect(await worker.whenAdmitted({ account: 'acct_3', ...JOB }, () => answers.length)).toBe(0);
});

it('it does not wait for what will never pass', async () => {
  const never = () => expect.unreachable();
  await expect(whenAdmitted({ account: 'acct_3', ...JOB, limits: ['unknown'] }, never)).rejects.toThrow(
    'The limits that the question names cannot be charged.',
  );
});
