import { parseList } from 'structured-headers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { calendarOf } from '../../src/domain/limits/calendar.ts';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';

const SETTINGS = { operations: { list: [{ method: 'GET', path: '/v3/things', id: 'listThings' }] } };

async function start(options: Parameters<typeof startGateway>[0]): Promise<TestGateway> {
  const gateway = await startGateway({ settings: SETTINGS, ...options });
  onTestFinished(() => gateway.close());
  return gateway;
}

const YEAR = calendarOf({ unit: 'year', timeZone: 'Europe/Berlin', startsOn: 1 });

describe.each(STORES)('with the $kind store', ({ store }) => {
  it('its headers have the length and the end of the period, and its 429 names the date', async () => {
    const gateway = await start({
      store: store(),
      limits: {
        limits: { annual: { per: 'organization', points: 3, period: 'year', timeZone: 'Europe/Berlin' } },
      },
    });
    const { startMs, endMs } = YEAR.at(Date.now());
    const seconds = (endMs - startMs) / 1_000;
    const leftOf = (text: string | null, pattern: RegExp) => Number(pattern.exec(text ?? '')?.[1]);
    const first = await gateway.send('GET', '/v3/things');
    expect(first.headers.get('RateLimit-Policy')).toContain(`"annual";q=3;w=${seconds}`);
    const left = leftOf(first.headers.get('RateLimit'), /"annual";r=2;t=(\d+)/);
    expect(Math.abs(left - (endMs - Date.now()) / 1_000)).toBeLessThan(60);
    await gateway.send('GET', '/v3/things');
    await gateway.send('GET', '/v3/things', { token: 'other' });
    const refused = await gateway.send('GET', '/v3/things');
    expect(refused.status).toBe(429);
    expect(Math.abs(leftOf(refused.headers.get('Retry-After'), /^(\d+)$/) - left)).toBeLessThan(60);
    const year = new Date(startMs + 86_400_000).getUTCFullYear();
    expect(await refused.json()).toMatchObject({
      detail: `The Organization has used its 3 points per year; this year ends on 1 January ${year + 1}, 00:00 (Europe/Berlin).`,
      extensions: { bucket: 'annual', limit: 3, windowSeconds: seconds, costPoints: 1 },
    });
    // The refusal has spent nothing of the other buckets.
    expect(remainingOf(refused)).toMatchObject({ 'account-read': 18, annual: 0 });
  });

  it('an override may go beyond 32 bits, and the headers keep to the 15 digits that a structured field can have', async () => {
    const gateway = await start({
      store: store(),
      limits: {
        limits: { large: { per: 'account', points: 'none', period: 'month' } },
        accounts: { acct_1: { large: 9_000_000_000_000_000 } },
      },
    });
    const { headers } = await gateway.send('GET', '/v3/things');
    const largeOf = (name: string) =>
      parseList(headers.get(name) ?? '').find(([item]) => item === 'large')?.[1];
    expect(largeOf('RateLimit-Policy')?.get('q')).toBe(999_999_999_999_999);
    expect(largeOf('RateLimit')?.get('r')).toBe(999_999_999_999_999);
    expect(headers.get('RateLimit')).not.toContain('9999999999999999');
  });

  it('months begin on the day of the limits file, or else of the directory, or else of the limit', async () => {
    const month = (startsOn: number) => {
      const calendar = calendarOf({ unit: 'month', timeZone: 'UTC', startsOn });
      const { startMs, endMs } = calendar.at(Date.now());
      return { period: { start: new Date(startMs).toISOString(), end: new Date(endMs).toISOString() } };
    };
    const gateway = await start({
      store: store(),
      settings: { ...SETTINGS, usage: { path: '/usage' } },
      limits: {
        limits: {
          'organization-month': { per: 'organization', points: 10, period: 'month' },
          'account-month': { per: 'account', points: 10, period: 'month', startsOn: 28 },
          'account-week': { per: 'account', points: 10, period: 'week' },
        },
        accounts: { acct_1: { periodStartsOn: 3 } },
      },
      identities: {
        tokens: { person: 'person_1', other: 'person_2' },
        principals: {
          person_1: { type: 'Person', account: 'acct_1' },
          person_2: { type: 'Person', account: 'acct_2' },
        },
        accounts: { acct_1: { organization: 'org_1', periodStartsOn: 17 }, acct_2: {} },
      },
    });
    const buckets = async (token: string) => {
      await gateway.send('GET', '/v3/things', { token });
      const own = (await (await gateway.send('GET', '/usage', { token })).json()) as {
        buckets: { bucket: string; used: number; period?: object }[];
      };
      return Object.fromEntries(own.buckets.map((one) => [one.bucket, one]));
    };
    expect(await buckets('person')).toMatchObject({
      'account-month': { used: 1, ...month(3) },
      'organization-month': { used: 1, ...month(17) },
      'account-week': { used: 1, period: { unit: 'week', startsOn: 'monday' } },
    });
    expect(await buckets('other')).toMatchObject({ 'account-month': { used: 1, ...month(28) } });
  });
});
