import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import type { ShownLimit } from '../../src/admin/facts/live-limit-api.ts';
import type { Usage } from '../../src/admin/usage/owner-usage.ts';
import { explain } from '../../src/commands/costs/explain.ts';
import { setLimit, unsetLimit } from '../../src/commands/limit/limit.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { runHere } from '../fixtures/run-here.ts';

const LIMITS = { principals: { person_1: { 'person-read': 5000 } } };

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await startGateway({ store: { kind: 'memory' }, limits: LIMITS });
});
afterEach(() => gateway.close());

/** The limits of a Person's own buckets, under the names that the contract gives them. */
const policyOf = async (token: string, account?: string) => {
  const answer = await gateway.send('GET', '/v3/mfa-factors', { token, ...(account && { account }) });
  return answer.headers.get('RateLimit-Policy');
};

const bucketsOf = async (id: string) =>
  ((await (await fetch(`${gateway.adminUrl}/usage/persons/${id}`)).json()) as Usage).buckets;

it('in the limits file: for this Person, whatever Account it acts for, and for nobody else', async () => {
  const raised = '"account-read";q=5000;w=60, "account-write";q=10;w=60';
  expect(await policyOf('person')).toBe(raised);
  expect(await policyOf('person', 'acct_2')).toBe(raised);
  expect(await policyOf('other')).toBe('"account-read";q=10;w=60, "account-write";q=10;w=60');
  const ownAccount = await gateway.send('GET', '/v3/things', { token: 'person' });
  expect(ownAccount.headers.get('RateLimit-Policy')).toContain('"account-read";q=20;');
  expect(await bucketsOf('person_1')).toMatchObject([
    { bucket: 'person-read', limit: 5000, used: 2, source: 'override', writtenAt: /limits\.yaml:\d+$/ },
    { bucket: 'person-write', limit: 10, source: 'default' },
  ]);
  expect(await bucketsOf('person_2')).toMatchObject([{ limit: 10, source: 'default' }, { limit: 10 }]);
});

it('while the gateway runs, which weir usage shows', async () => {
  const options = { url: gateway.adminUrl, why: 'audit', by: 'alice' };
  const { stdout } = await runHere(() => setLimit('person_2', ['person-read=700'], options));
  expect(stdout).toMatch(/^Set: person-read of person_2: 700 points until \S+, by alice: audit\n$/);
  expect(await policyOf('other')).toContain('"account-read";q=700;');
  expect(await policyOf('person')).toContain('"account-read";q=5000;');
  const list = (await (await fetch(`${gateway.adminUrl}/limits/live`)).json()) as ShownLimit[];
  expect(list).toMatchObject([{ scope: 'person', id: 'person_2', bucket: 'person-read', limit: 700 }]);
  expect(await bucketsOf('person_2')).toMatchObject([{ limit: 700, source: 'live', by: 'alice' }, {}]);
  await runHere(() => unsetLimit('person_2', undefined, options));
  expect(await policyOf('other')).toContain('"account-read";q=10;');
});

it('in a file of overrides, which weir explain shows', async () => {
  const config = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    settings: { limits: { file: 'limits.yaml', overrides: ['more.yaml'] } },
  });
  await writeFile(join(dirname(config), 'more.yaml'), 'principals: { person_1: { person-write: 900 } }\n');
  const { stdout } = await runHere(() =>
    explain('POST', '/v3/mfa-factors', { config, token: 'person', json: true }),
  );
  expect(JSON.parse(stdout)).toMatchObject({
    buckets: [{ bucket: 'person-write', of: 'person_1', limit: 900 }],
  });
});

it('its limits per principal are shown with the plan of its own Account', async () => {
  const planned = await startGateway({
    limits: {
      limits: { 'key-hour': { per: 'principal', requests: 5, window: '1h' } },
      plans: { pro: { 'key-hour': 7200 } },
      accounts: { acct_1: { plan: 'pro' } },
    },
  });
  onTestFinished(() => planned.close());
  const charged = await planned.send('GET', '/v3/mfa-factors', { token: 'person' });
  expect(charged.headers.get('RateLimit-Policy')).toContain('"key-hour";q=7200;');
  const usage = (await (await fetch(`${planned.adminUrl}/usage/persons/person_1`)).json()) as Usage;
  expect(usage.buckets.at(-1)).toMatchObject({ bucket: 'key-hour', limit: 7200, source: 'plan' });
});
