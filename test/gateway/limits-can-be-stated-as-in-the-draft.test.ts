import { expect, it, onTestFinished } from 'vitest';
import { startGateway } from '../fixtures/gateway.ts';

const OPERATIONS = {
  list: [
    { method: 'GET', path: '/v3/things', id: 'things' },
    { method: 'POST', path: '/v3/reports', id: 'report', cost: 3 },
  ],
};

async function start(fields: 'contract' | 'draft') {
  const gateway = await startGateway({
    settings: { operations: OPERATIONS, limits: { file: 'limits.yaml', fields } },
    limits: {
      windowSeconds: 60,
      defaults: { 'account-write': 3, 'organization-write': 3 },
      limits: {
        calls: { per: 'account', requests: 100, window: '1h' },
        'account-hour': { per: 'account', points: 5, window: '1h' },
      },
    },
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

it('names points where a request may cost more than one, and no unit where each costs one', async () => {
  const gateway = await start('draft');
  const { headers } = await gateway.send('GET', '/v3/things');
  const policy = headers.get('RateLimit-Policy') ?? '';
  expect(policy).toMatch(/"account-read";q=\d+;w=60/);
  expect(policy).toContain('"account-write";q=3;qu="points";w=60');
  expect(policy).toContain('"calls";q=100;w=3600');
});

it('names all three limits that have no room in the body of a 429, and no other', async () => {
  const gateway = await start('draft');
  await gateway.send('POST', '/v3/reports');
  const refused = await gateway.send('POST', '/v3/reports');
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({
    extensions: {
      'violated-policies': ['account-write', 'organization-write', 'account-hour'],
      costPoints: 3,
    },
  });
});

it('states nothing beyond the contract unless it is asked for', async () => {
  const gateway = await start('contract');
  const { headers } = await gateway.send('POST', '/v3/reports');
  expect(headers.get('RateLimit-Policy')).not.toContain('qu=');
  const body = (await (await gateway.send('POST', '/v3/reports')).json()) as { extensions: object };
  expect(Object.keys(body.extensions)).toEqual(['bucket', 'limit', 'windowSeconds', 'costPoints']);
});
