import { expect, it, onTestFinished } from 'vitest';
import { startGateway } from '../../fixtures/gateway.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const LIST = [
  {
    method: 'POST',
    path: '/answers',
    cost: 1,
    reserve: { json: '/most', most: 50 },
    settle: { header: 'x-cost' },
    refundOn: ['5xx'],
  },
];
const LIMITS = {
  windowSeconds: 60,
  defaults: { 'account-write': 100, 'organization-write': 100 },
  limits: { calls: { per: 'account', requests: 10, window: '1h' } },
};

/** A gateway whose requests state in `x-status` and `x-answer` what the upstream answers. */
async function start() {
  const upstream = await startUpstream(({ headers }, response) => {
    const [status, cost] = [Number(headers['x-status'] ?? 200), headers['x-answer'] ?? '0'];
    response.writeHead(status, { 'X-Cost': cost }).end();
  });
  const gateway = await startGateway({
    upstream,
    settings: { operations: { list: LIST }, limits: { file: 'limits.yaml', fields: 'draft' } },
    limits: LIMITS,
  });
  onTestFinished(() => gateway.close());
  const ask = async (most: number, headers: Record<string, string>) => {
    const body = JSON.stringify({ most });
    const response = await gateway.send('POST', '/answers', {
      headers: { 'Content-Type': 'application/json', ...headers },
      body,
    });
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
  return { gateway, ask };
}

const left = (response: { readonly headers: Headers }, name: string) =>
  Number(new RegExp(`"${name}";r=(\\d+)`).exec(response.headers.get('RateLimit') ?? '')?.[1]);

it('a limit has points where a request may cost more than one in the end, although it is listed with one', async () => {
  const { ask } = await start();
  const policy = (await ask(1, {})).headers.get('RateLimit-Policy');
  expect(policy).toContain('"account-write";q=100;qu="points";w=60');
  expect(policy).toContain('"calls";q=10;w=3600');
});

it('fields show the state after the reservation, and later ones what was settled and refunded', async () => {
  const { ask } = await start();
  const first = await ask(40, { 'x-answer': '12' });
  expect([left(first, 'account-write'), left(first, 'calls')]).toEqual([60, 9]);
  const failed = await ask(30, { 'x-status': '503' });
  expect([failed.status, left(failed, 'account-write'), left(failed, 'calls')]).toEqual([503, 58, 8]);
  const third = await ask(1, { 'x-answer': '1' });
  expect([left(third, 'account-write'), left(third, 'calls')]).toEqual([87, 8]);
});

it('a 429 names the limits that had no room for the reservation', async () => {
  const { ask } = await start();
  await ask(50, { 'x-answer': '50' });
  await ask(40, { 'x-answer': '40' });
  const refused = await ask(11, {});
  expect(refused.status).toBe(429);
  expect(JSON.parse(refused.body)).toMatchObject({
    extensions: { 'violated-policies': ['account-write', 'organization-write'], costPoints: 11 },
  });
});
