import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  // Nothing listens there: readiness must not care (DESIGN section 5).
  gateway = await startGateway({ store: { kind: 'redis', url: 'redis://127.0.0.1:1' } });
});
afterAll(() => gateway.close());

it('is alive and ready although the store is down', async () => {
  for (const path of ['/livez', '/readyz']) expect((await fetch(gateway.adminUrl + path)).status).toBe(200);
});

it('counts requests by kind, bucket and outcome, and never names an Account', async () => {
  await gateway.send('GET', '/v3/things', { token: 'person' });
  await gateway.send('GET', '/v3/things', { token: null });
  await expect.poll(() => gateway.metrics()).toContain('outcome="Unauthenticated"');
  const metrics = await gateway.metrics();
  expect(metrics).toContain('weir_requests_total{kind="read",bucket="account-read",outcome="uncounted"} 1');
  expect(metrics).toContain('weir_requests_total{kind="read",bucket="none",outcome="Unauthenticated"} 1');
  for (const name of ['charge', 'upstream', 'request'])
    expect(metrics).toContain(`weir_${name}_duration_seconds_count`);
  expect(metrics).toContain('process_cpu_seconds_total');
  expect(metrics).not.toMatch(/acct_1|org_1|person_1/);
});

it('is not reachable from the port of the clients', async () => {
  expect((await gateway.send('GET', '/metrics', { token: null })).status).toBe(401);
});
