import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type AskedDescriptor,
  codesOf,
  headersOf,
  type RateLimitGateway,
  startRateLimitService,
} from '../../fixtures/rate-limit-service.ts';

const RULES = `
domain: test
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 3 }
  - key: user
    value: vip
    rate_limit: { unit: hour, requests_per_unit: 100 }
  - key: user
    value: banned
    rate_limit: { unit: second, requests_per_unit: 0 }
  - key: user
    value: suspected
    shadow_mode: true
    rate_limit: { unit: second, requests_per_unit: 0 }
  - key: user
    value: free
    rate_limit: { unlimited: true }
  - key: tenant
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: watched
    rate_limit: { unit: minute, requests_per_unit: 1 }
    shadow_mode: true
  - key: path
    value: /files/*/raw
    share_threshold: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: path
    value: /each/*
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: read
    rate_limit: { unit: minute, requests_per_unit: 1, name: reads }
  - key: search
    rate_limit: { unit: month, requests_per_unit: 5, replaces: [{ name: reads }] }
  - key: premium
    rate_limit: { unlimited: true, replaces: [{ name: reads }] }
  - key: tokens
    rate_limit: { unit: week, requests_per_unit: 10 }
  - key: answered
    spend_rest: true
    rate_limit: { unit: week, requests_per_unit: 10 }
  - key: yearly
    rate_limit: { unit: year, requests_per_unit: 9 }
  - key: model
    value: none
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 0 }
  - key: model
    value: large
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
    metadata: { serve: { name: large } }
  - key: model
    value: small
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 2 }
    metadata: { serve: { name: small } }
`;

let service: RateLimitGateway;
beforeAll(async () => {
  service = await startRateLimitService([RULES]);
});
afterAll(() => service.close());

const entries = (one: Readonly<Record<string, string>>): AskedDescriptor => ({ entries: one });
const ask = (...descriptors: AskedDescriptor[]) => service.ask({ descriptors });

describe('a descriptor', () => {
  it('has its limit, what is left of it, and when it is full again', async () => {
    const answer = await ask(entries({ user: 'first' }));
    expect(answer.statuses[0]).toMatchObject({
      code: 1,
      currentLimit: { requestsPerUnit: 3, unit: 3 },
      limitRemaining: 2,
      durationUntilReset: { seconds: expect.objectContaining({ low: 3_600 }) },
    });
    expect(headersOf(answer)).toEqual({
      'RateLimit-Policy': '"user";q=3;w=3600',
      RateLimit: '"user";r=2;t=3600',
    });
  });

  it.each([
    ['a value of its own before the rule for every value', { user: 'vip' }, 99],
    ['no limit, where it is shorter than its rule', {}, undefined],
    ['no limit, where it is longer than its rule', { user: 'long', more: 'x' }, undefined],
  ])('is matched to %s', async (_, one: Readonly<Record<string, string>>, left) => {
    const [state] = (await ask(entries(Object.keys(one).length === 0 ? { other: 'x' } : one))).statuses;
    expect(state?.limitRemaining || undefined).toBe(left);
  });

  it('without a limit has 2^32 - 1 left', async () => {
    expect((await ask(entries({ user: 'free' }))).statuses[0]).toMatchObject({
      code: 1,
      limitRemaining: 0xffff_ffff,
    });
  });

  it('with the limit 0 is refused without a call to the store, and nothing else is spent', async () => {
    const banned = await ask(entries({ user: 'banned' }), entries({ tenant: 'of the banned' }));
    expect(codesOf(banned)).toEqual(['OVER_LIMIT', 'OVER_LIMIT', 'OK']);
    expect((await ask(entries({ tenant: 'of the banned' }))).statuses[0]?.limitRemaining).toBe(1);
  });

  it('in shadow mode refuses nothing', async () => {
    for (let count = 0; count < 3; count++)
      expect(codesOf(await ask(entries({ watched: 'a' })))).toEqual(['OK', 'OK']);
    expect(await service.metrics()).toMatch(
      /^weir_descriptor_limits_total\{domain="test",descriptor="watched",outcome="shadow_over"\} 2$/m,
    );
  });

  it('shares its count with all values of a wildcard, if the rule says so', async () => {
    await ask(entries({ path: '/files/1/raw' }));
    expect(codesOf(await ask(entries({ path: '/files/2/raw' })))[0]).toBe('OVER_LIMIT');
    await ask(entries({ path: '/each/1' }));
    expect(codesOf(await ask(entries({ path: '/each/2' })))[0]).toBe('OK');
    expect(codesOf(await ask(entries({ path: '/files/1/rare' })))[0]).toBe('OK');
  });

  it('is counted separately, whatever separators its value has', async () => {
    await service.ask({ descriptors: [entries({ tenant: 'a~b' })], hits: 2 });
    expect(codesOf(await ask(entries({ tenant: 'a%7Eb' })))[0]).toBe('OK');
    expect(codesOf(await ask(entries({ tenant: 'a~b' })))[0]).toBe('OVER_LIMIT');
  });
});

describe('a long value', () => {
  it('is counted separately', async () => {
    const long = (end: string) => entries({ tenant: `${'ü'.repeat(20_000)}${end}` });
    await service.ask({ descriptors: [long('a')], hits: 2 });
    expect(codesOf(await ask(long('b')))[0]).toBe('OK');
    expect(codesOf(await ask(long('a')))[0]).toBe('OVER_LIMIT');
  });
});

describe('a request', () => {
  it('spends nothing anywhere when one of its descriptors has no room', async () => {
    const both = [entries({ user: 'eager' }), entries({ tenant: 'small' })] as const;
    expect(codesOf(await ask(...both))[0]).toBe('OK');
    expect(codesOf(await ask(...both))[0]).toBe('OK');
    for (let count = 0; count < 3; count++)
      expect(codesOf(await ask(...both))).toEqual(['OVER_LIMIT', 'OK', 'OVER_LIMIT']);
    const [user] = (await ask(entries({ user: 'eager' }))).statuses;
    expect(user?.limitRemaining).toBe(0);
  });

  it('that is refused says when it fits', async () => {
    await service.ask({ descriptors: [entries({ user: 'waiting' })], hits: 3 });
    expect(headersOf(await ask(entries({ user: 'waiting' })))).toMatchObject({
      RateLimit: '"user";r=0;t=3600',
      'Retry-After': '3600',
    });
  });

  it('drops the limits that another one of it replaces', async () => {
    for (let count = 0; count < 3; count++)
      expect(codesOf(await ask(entries({ read: 'all' }), entries({ search: 'all' })))[0]).toBe('OK');
    expect(codesOf(await ask(entries({ read: 'all' })))[0]).toBe('OK');
    expect(codesOf(await ask(entries({ read: 'all' })))[0]).toBe('OVER_LIMIT');
  });

  it('drops them also where the other one has no limit', async () => {
    const [read, premium] = [entries({ read: 'premium' }), entries({ premium: 'yes' })];
    for (let count = 0; count < 3; count++)
      expect(codesOf(await ask(read, premium))).toEqual(['OK', 'OK', 'OK']);
    expect(codesOf(await ask(read))[0]).toBe('OK');
    expect(codesOf(await ask(read))[0]).toBe('OVER_LIMIT');
  });

  it('names the rules that refused it in its metadata, and none in shadow mode', async () => {
    const { dynamicMetadata } = await ask(entries({ user: 'suspected' }), entries({ user: 'banned' }));
    expect(dynamicMetadata?.fields).toMatchObject({
      domain: { stringValue: 'test' },
      overLimit: { listValue: { values: [{ stringValue: 'user_banned' }] } },
    });
  });

  it('is refused by limits in quota mode only if none of them has room, and gets the metadata of those that have', async () => {
    const both = [entries({ model: 'large' }), entries({ model: 'small' })] as const;
    const first = await ask(...both);
    expect(first.dynamicMetadata?.fields).toMatchObject({
      metadata: {
        structValue: { fields: { serve: { structValue: { fields: { name: { stringValue: 'large' } } } } } },
      },
    });
    const second = await ask(...both);
    expect(codesOf(second)).toEqual(['OK', 'OVER_LIMIT', 'OK']);
    expect(JSON.stringify(second.dynamicMetadata)).toContain('"small"');
    const third = await ask(...both);
    expect(codesOf(third)).toEqual(['OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT']);
    expect(Number(headersOf(third)['Retry-After'])).toBeGreaterThan(50);
  });

  it('whose only limit in quota mode is 0 is refused, and spends nothing', async () => {
    const both = [entries({ model: 'none' }), entries({ tenant: 'no model' })] as const;
    expect(codesOf(await ask(...both))).toEqual(['OVER_LIMIT', 'OVER_LIMIT', 'OK']);
    expect((await ask(entries({ tenant: 'no model' }))).statuses[0]?.limitRemaining).toBe(1);
  });

  it('of an unknown domain passes', async () => {
    const answer = await service.ask({ domain: 'other', descriptors: [entries({ user: 'banned' })] });
    expect(codesOf(answer)).toEqual(['OK', 'OK']);
  });
});

describe('hits', () => {
  it('of the request count for each descriptor that has none of its own', async () => {
    const descriptors = [entries({ user: 'heavy' }), { ...entries({ tokens: 'heavy' }), hits: 7 }];
    const { statuses } = await service.ask({ descriptors, hits: 2 });
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([1, 3]);
  });

  it('of 0 spend nothing, and are over the limit where one more would be', async () => {
    const look = { ...entries({ tenant: 'looked at' }), hits: 0 };
    expect((await ask(look)).statuses[0]).toMatchObject({ code: 1, limitRemaining: 2 });
    await service.ask({ descriptors: [entries({ tenant: 'looked at' })], hits: 2 });
    expect(codesOf(await ask(look))).toEqual(['OVER_LIMIT', 'OVER_LIMIT']);
  });

  it('of 0 beside others are looked at first', async () => {
    const look = { ...entries({ tenant: 'gate' }), hits: 0 };
    const { statuses } = await ask(look, entries({ user: 'behind' }));
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([2, 2]);
    await service.ask({ descriptors: [entries({ tenant: 'gate' })], hits: 2 });
    expect(codesOf(await ask(look, entries({ user: 'behind' })))).toEqual(['OVER_LIMIT', 'OVER_LIMIT', 'OK']);
    expect((await ask(entries({ user: 'behind' }))).statuses[0]?.limitRemaining).toBe(1);
  });

  it('that are given back to a limit of 0 have room', async () => {
    const back = { ...entries({ user: 'banned' }), isNegative: true };
    expect(codesOf(await ask(back))).toEqual(['OK', 'OK']);
  });

  it('of two equal descriptors are added', async () => {
    const { statuses } = await ask(entries({ user: 'twice' }), entries({ user: 'twice' }));
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([1, 1]);
  });

  it('that do not fit spend nothing, or what is left where the rule says so', async () => {
    const left = async (one: AskedDescriptor) => (await ask({ ...one, hits: 0 })).statuses[0]?.limitRemaining;
    for (const [key, expected] of [
      ['tokens', 4],
      ['answered', 0],
    ] as const) {
      const one = entries({ [key]: 'long' });
      await ask({ ...one, hits: 6 });
      expect(codesOf(await ask({ ...one, hits: 25 }))).toEqual(['OVER_LIMIT', 'OVER_LIMIT']);
      expect([key, await left(one)]).toEqual([key, expected]);
    }
  });

  it('beyond every number are refused', async () => {
    const huge = { ...entries({ user: 'huge' }), hits: Number.MAX_SAFE_INTEGER };
    expect(codesOf(await ask(huge))).toEqual(['OVER_LIMIT', 'OVER_LIMIT']);
    expect((await ask(entries({ user: 'huge' }))).statuses[0]?.limitRemaining).toBe(2);
  });
});

describe('negative hits', () => {
  it('give back what was spent, and no more', async () => {
    const one = entries({ tokens: 'returned' });
    await ask({ ...one, hits: 8 });
    expect((await ask({ ...one, hits: 5, isNegative: true })).statuses[0]).toMatchObject({
      code: 1,
      limitRemaining: 7,
    });
    expect(
      (await ask({ ...one, hits: Number.MAX_SAFE_INTEGER, isNegative: true })).statuses[0],
    ).toMatchObject({
      code: 1,
      limitRemaining: 10,
    });
    expect((await ask({ ...one, hits: 10 })).statuses[0]).toMatchObject({ code: 1, limitRemaining: 0 });
    expect(await service.metrics()).toMatch(
      /^weir_descriptor_limits_total\{domain="test",descriptor="tokens",outcome="refunded"\} 2$/m,
    );
  });

  it('are the hits of the request, in all descriptors that have none of their own', async () => {
    const both = [entries({ user: 'many' }), entries({ tokens: 'many' })];
    await service.ask({ descriptors: both, hits: 3 });
    const { statuses } = await service.ask({
      descriptors: both.map((one) => ({ ...one, isNegative: true })),
      hits: 2,
    });
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([2, 9]);
  });

  it('are given back beside hits that are refused', async () => {
    const full = entries({ tenant: 'full' });
    const returned = { ...entries({ tokens: 'beside' }), hits: 4 };
    await ask({ ...full, hits: 2 }, returned);
    const answer = await ask(full, { ...returned, isNegative: true });
    expect(codesOf(answer)).toEqual(['OVER_LIMIT', 'OVER_LIMIT', 'OK']);
    expect(answer.statuses[1]?.limitRemaining).toBe(10);
  });

  it('of a limit that hits of the same request are charged to are subtracted from them', async () => {
    const one = entries({ tokens: 'both' });
    const { statuses } = await ask({ ...one, hits: 6 }, { ...one, hits: 4, isNegative: true });
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([8, 8]);
  });

  it('of a descriptor without a limit, or with the limit 0, change nothing', async () => {
    const some = [entries({ nobody: 'x' }), entries({ user: 'free' })];
    expect(codesOf(await ask(...some.map((one) => ({ ...one, isNegative: true }))))).toEqual([
      'OK',
      'OK',
      'OK',
    ]);
  });
});

describe('a year', () => {
  it('is a year of the calendar, in which points are given back too', async () => {
    const own = { ...entries({ user: 'year' }), limit: { requestsPerUnit: 2, unit: 6 } };
    const rule = await ask({ ...entries({ yearly: 'a' }), hits: 5 });
    expect(rule.statuses[0]).toMatchObject({
      currentLimit: { requestsPerUnit: 9, unit: 6 },
      limitRemaining: 4,
    });
    expect((await ask(own)).statuses[0]).toMatchObject({
      currentLimit: { requestsPerUnit: 2, unit: 6 },
      limitRemaining: 1,
    });
    const untilEnd = (Date.UTC(new Date().getUTCFullYear() + 1, 0) - Date.now()) / 1_000;
    const [state] = (await ask({ ...entries({ yearly: 'a' }), hits: 3, isNegative: true })).statuses;
    expect(state).toMatchObject({ limitRemaining: 7 });
    expect(Math.abs(Number(state?.durationUntilReset?.seconds) - untilEnd)).toBeLessThan(60);
  });

  it('has its own length in the policy', async () => {
    const year = new Date().getUTCFullYear();
    const seconds = (Date.UTC(year + 1, 0) - Date.UTC(year, 0)) / 1_000;
    const headers = headersOf(await ask(entries({ yearly: 'length' })));
    expect(headers['RateLimit-Policy']).toBe(`"yearly";q=9;w=${seconds}`);
  });
});

describe('a limit that a descriptor brings along', () => {
  it('replaces the limit of its rule, in a window of several units', async () => {
    const own = { ...entries({ user: 'own' }), limit: { requestsPerUnit: 1, unit: 1, multiplier: 90 } };
    expect((await ask(own)).statuses[0]).toMatchObject({
      currentLimit: { requestsPerUnit: 1, unit: 1, unitMultiplier: {} },
      durationUntilReset: { seconds: expect.objectContaining({ low: 90 }) },
    });
    expect(codesOf(await ask(own))[0]).toBe('OVER_LIMIT');
  });

  it('does not take the place of a stricter one of the same request', async () => {
    const rule = entries({ user: 'doubled' });
    const wider = { ...rule, limit: { requestsPerUnit: 9, unit: 3 } };
    await service.ask({ descriptors: [rule], hits: 3 });
    for (const both of [
      [rule, wider],
      [wider, rule],
    ])
      expect(codesOf(await ask(...both))[0]).toBe('OVER_LIMIT');
    const watched = entries({ watched: 'doubled' });
    const enforced = { ...watched, limit: { requestsPerUnit: 1, unit: 2 } };
    await ask(enforced);
    for (const both of [
      [watched, enforced],
      [enforced, watched],
    ])
      expect(codesOf(await ask(...both))[0]).toBe('OVER_LIMIT');
  });
});

describe('a request that cannot be decided', () => {
  const many = Array.from({ length: 33 }, (_, index) => entries({ user: `${index}` }));
  it.each<[string, { domain?: string; descriptors: readonly AskedDescriptor[] }, RegExp]>([
    ['without a domain', { domain: '', descriptors: [entries({ a: 'b' })] }, /no domain/],
    ['without descriptors', { descriptors: [] }, /no descriptors/],
    ['with an empty descriptor', { descriptors: [entries({})] }, /no entries/],
    ['with too many descriptors', { descriptors: many }, /33 descriptors, of 32 at most/],
    [
      'with an unknown unit',
      { descriptors: [{ ...entries({ user: 'x' }), limit: { requestsPerUnit: 1, unit: 8 } }] },
      /unit 8/,
    ],
    [
      'with two years',
      { descriptors: [{ ...entries({ user: 'x' }), limit: { requestsPerUnit: 1, unit: 6, multiplier: 2 } }] },
      /31 days/,
    ],
    ...[
      [1, 31_622_400],
      [3, 8_784],
      [4, 366],
    ].map(([unit = 0, multiplier = 0]): [string, { descriptors: AskedDescriptor[] }, RegExp] => [
      `with ${multiplier} of unit ${unit}`,
      { descriptors: [{ ...entries({ user: 'x' }), limit: { requestsPerUnit: 1, unit, multiplier } }] },
      /31 days/,
    ]),
    [
      'with a longer window than 31 days',
      { descriptors: [{ ...entries({ user: 'x' }), limit: { requestsPerUnit: 1, unit: 5, multiplier: 2 } }] },
      /31 days/,
    ],
  ])('%s is an invalid argument', async (_, request, details) => {
    const asking = service.ask(request);
    await expect(asking).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringMatching(details),
    });
  });
});
