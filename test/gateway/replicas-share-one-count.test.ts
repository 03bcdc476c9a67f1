import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { sendTo } from '../fixtures/gateway.ts';
import { startUpstream, type TestUpstream } from '../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../fixtures/weir-process.ts';

let upstream: TestUpstream;
let replicas: WeirProcess[];

beforeAll(async () => {
  upstream = await startUpstream();
  const keyPrefix = `test-${randomUUID()}`;
  replicas = await Promise.all(
    [1, 2, 3].map(() =>
      startWeir({
        upstreamUrl: upstream.url,
        store: { kind: 'redis', url: inject('redisUrl'), keyPrefix, deadlineMs: 5000 },
        limits: { accounts: { acct_3: { 'account-write': 100 } } },
      }),
    ),
  );
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  await upstream.close();
});

it('three gateways admit exactly 14 of 300 parallel requests of cost 7 at limit 100', async () => {
  const answers = await Promise.all(
    Array.from({ length: 300 }, (_, index) =>
      sendTo(replicas[index % 3]?.url ?? '', 'POST', '/v3/reports', { token: 'lonely' }),
    ),
  );
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  expect([count(200), count(429)]).toEqual([14, 286]);
  expect(upstream.seen).toHaveLength(14);
});
