import { expect, it, onTestFinished } from 'vitest';
import {
  type AskedDescriptor,
  codesOf,
  headersOf,
  startRateLimitService,
} from '../../fixtures/rate-limit-service.ts';

const RULES = `
domain: test
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 4 }
  - key: tenant
    rate_limit: { unit: day, requests_per_unit: 100 }
  - key: model
    value: large
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
    metadata: { serve: large }
  - key: model
    value: small
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 4 }
    metadata: { serve: small }
  - key: model
    value: wide
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 100 }
  - key: tokens
    spend_rest: true
    rate_limit: { unit: week, requests_per_unit: 20 }
`;

/** One of two replicas, whose store does not answer. */
async function start() {
  const store = {
    kind: 'redis',
    url: 'redis://127.0.0.1:1',
    onStoreFailure: 'share',
    expectedReplicas: 2,
  };
  const service = await startRateLimitService([RULES], { store });
  onTestFinished(() => service.close());
  return async (...descriptors: AskedDescriptor[]) => {
    const answer = await service.ask({ descriptors });
    expect(headersOf(answer)['Service-RateLimit-Mode']).toBe('degraded');
    return answer;
  };
}

const of = (key: string, value: string): AskedDescriptor => ({ entries: { [key]: value } });
const LARGE = of('model', 'large');
const SMALL = of('model', 'small');

it.each([
  ['a limit in quota mode', of('model', 'wide')],
  ['a limit that is only looked at', { ...of('tenant', 'a'), hits: 0 }],
])('a limit beside %s admits its part', async (_, beside) => {
  const ask = await start();
  const codes: (string | undefined)[] = [];
  for (let sent = 0; sent < 3; sent++) codes.push(codesOf(await ask(of('user', 'a'), beside))[0]);
  expect(codes).toEqual(['OK', 'OK', 'OVER_LIMIT']);
});

it('hits above the whole limit fit no part of it', async () => {
  const ask = await start();
  const hits = (count: number) => ask({ ...of('user', 'a'), hits: count });
  expect(codesOf(await hits(1_000))[0]).toBe('OVER_LIMIT');
  expect(codesOf(await hits(5))[0]).toBe('OVER_LIMIT');
  expect(codesOf(await hits(4))[0]).toBe('OK');
});

it('limits in quota mode refuse when none of their parts has room, and send the metadata of those that have', async () => {
  const ask = await start();
  const served = async () => {
    const answer = await ask(LARGE, SMALL);
    const [model] = /large|small/.exec(JSON.stringify(answer.dynamicMetadata?.fields.metadata ?? {})) ?? [];
    return [...codesOf(answer), model];
  };
  expect(await served()).toEqual(['OK', 'OK', 'OK', 'large']);
  expect(await served()).toEqual(['OK', 'OVER_LIMIT', 'OK', 'small']);
  expect(await served()).toEqual(['OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT', undefined]);
});

it('a refusal by the parts of limits in quota mode spends nothing', async () => {
  const ask = await start();
  await ask(LARGE);
  for (let sent = 0; sent < 3; sent++)
    expect(codesOf(await ask(LARGE, of('user', 'b')))).toEqual(['OVER_LIMIT', 'OVER_LIMIT', 'OK']);
  expect(codesOf(await ask(of('user', 'b')))[0]).toBe('OK');
  expect(codesOf(await ask(of('user', 'b')))[0]).toBe('OK');
  expect(codesOf(await ask(of('user', 'b')))[0]).toBe('OVER_LIMIT');
});

it('hits that do not fit a part spend what is left of it, where the rule says so', async () => {
  const ask = await start();
  const look = { ...of('tokens', 'a'), hits: 0 };
  await ask({ ...of('tokens', 'a'), hits: 6 });
  expect(codesOf(await ask(look))[0]).toBe('OK');
  expect(codesOf(await ask({ ...of('tokens', 'a'), hits: 9 }))[0]).toBe('OVER_LIMIT');
  expect(codesOf(await ask(look))[0]).toBe('OVER_LIMIT');
});
