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

it('counts the responses by status class, and separately for the upstream', async () => {
  const before = await gateway.metrics();
  const count = (text: string, labels: string) =>
    Number(text.match(new RegExp(`^weir_responses_total\\{${labels}\\} (\\d+)$`, 'm'))?.[1]);
  const [forwarded, refused] = ['source="upstream",class="2xx"', 'source="gateway",class="4xx"'];
  await gateway.send('GET', '/v3/things');
  await gateway.send('GET', '/v3/things', { token: null });
  await expect.poll(async () => count(await gateway.metrics(), refused)).toBe(count(before, refused) + 1);
  expect(count(await gateway.metrics(), forwarded)).toBe(count(before, forwarded) + 1);
});

it('names its version and the version of its limits', async () => {
  const metrics = await gateway.metrics();
  expect(metrics).toMatch(/^weir_build_info\{version="\d+\.\d+\.\d+",node="\d+\.\d+\.\d+"\} 1$/m);
  expect(metrics).toMatch(/^weir_limits_info\{sha="[0-9a-f]{12}"\} 1$/m);
  expect(metrics).toContain('weir_live_limits 0');
});

it('is not reachable from the port of the clients', async () => {
  expect((await gateway.send('GET', '/metrics', { token: null })).status).toBe(401);
});

it.each([
  [
    'a body of another type',
    'application/x-www-form-urlencoded',
    '{"why": "x"}',
    415,
    /Content-Type: application\/json/,
  ],
  ['a body that is no JSON', 'application/json', '{why', 400, /^The body is not valid JSON\.$/],
  ['no body', 'application/json', '', 400, /^The body is empty\./],
  ['a long body', 'application/json', ' '.repeat(2_000_000), 413, /^The body is too long\.$/],
])('answers %s with an `error` that says what to change', async (_, type, body, status, text) => {
  const headers = { 'Content-Type': type };
  const answer = await fetch(`${gateway.adminUrl}/losses/seen`, { method: 'POST', headers, body });
  expect(answer.status).toBe(status);
  expect(await answer.json()).toEqual({ error: expect.stringMatching(text) });
});

it.each([
  ['a % that encodes nothing', '%', /^The path is not valid: encode a % of an id as %25/],
  ['an id that is no UTF-8', '%ff', /^The path is not valid/],
  ['an id that is too long', 'a'.repeat(1_001), /^The id in the path is too long\.$/],
])('answers a path with %s with an `error` that says what to change', async (_, id, text) => {
  const answer = await fetch(`${gateway.adminUrl}/usage/accounts/${id}`);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toEqual({ error: expect.stringMatching(text) });
});

it('answers a path that it does not have with an `error`', async () => {
  const answer = await fetch(`${gateway.adminUrl}/limits/life`);
  expect(answer.status).toBe(404);
  expect(await answer.json()).toEqual({ error: 'The admin port has no such path, or not with this method.' });
});
