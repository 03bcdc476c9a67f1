import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { generatedCombinations } from '../../fixtures/generated-cases.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { type Settling, startSettling } from '../../fixtures/settling.ts';

const KINDS: Readonly<Record<string, object>> = {
  final: {},
  bytes: { settle: { bytes: 10 } },
  member: { settle: { json: '/n' } },
  'another member': { settle: { json: '/m' } },
  field: { settle: { header: 'x-cost' } },
  reserve: { reserve: { json: '/r', most: 90 } },
  'reserve and member': { reserve: { json: '/q', most: 50 }, settle: { json: '/n' } },
  'refund of all': { refundOn: ['2xx', 404] },
  'bytes and a refund': { settle: { bytes: 10 }, refundOn: [200] },
};

const CASES = [
  { asks: '{"r":60,"q":1}', status: 200, fields: { 'x-cost': '3' }, states: '{"n":1,"m":70}' },
  { asks: '{"r":1,"q":40}', status: 201, fields: { 'x-cost': '0' }, states: '{"m":2,"n":45}' },
  { asks: '{"r":', status: 404, fields: {}, states: '' },
  { asks: '{"r":1,"q":2}', status: 200, fields: { 'x-cost': '200' }, states: '{"n":1}' },
  { asks: '{"r":500,"q":500}', status: 202, fields: {}, states: 'x'.repeat(3_000) },
  { asks: '', status: 200, fields: { 'x-cost': '250' }, states: 'x'.repeat(1_000), isCut: true },
];

const names = Object.keys(KINDS);
const PAIRS = generatedCombinations(
  CASES.flatMap((_, number) =>
    names.flatMap((one) =>
      names.map((other) => {
        const folder = `/${number}-${names.indexOf(one)}-${names.indexOf(other)}`;
        return { folder, number, one, other };
      }),
    ),
  ),
);

const METHOD = { method: 'POST' };
const list = PAIRS.flatMap(({ folder, one, other }) => [
  { ...METHOD, path: `${folder}/x`, cost: 20, ...KINDS[one] },
  { ...METHOD, path: `${folder}/{any}`, cost: 30, ...KINDS[other] },
]);

async function startWithAnswers(): Promise<Settling> {
  const gateway = await startSettling({ operations: { list, maxCost: 30 } });
  gateway.answer = async (response, request) => {
    const { status, fields, states, isCut } = CASES[Number(request.url?.[1])] ?? {};
    for await (const _ of request);
    const cut = isCut === true ? { 'Content-Length': '2000' } : {};
    response.writeHead(status ?? 500, { ...fields, ...cut });
    if (isCut === undefined) {
      response.end(states);
      return;
    }
    response.write(states);
    await setImmediate();
    response.destroy();
  };
  return gateway;
}

/** What each path has cost in the end. */
async function costs(gateway: Settling): Promise<ReadonlyMap<unknown, number>> {
  const sends = PAIRS.flatMap(({ folder, number }) =>
    ['x', 'y', 'x.json'].map((name) => async () => {
      const body = CASES[number]?.asks;
      const headers = { 'Content-Type': 'application/json' };
      const sent = await gateway.send('POST', `${folder}/${name}`, { headers, ...(body && { body }) });
      await sent.arrayBuffer().catch(() => undefined);
    }),
  );
  const sendCount = sends.length;
  const senders = Array.from({ length: 16 }, async () => {
    for (let send = sends.pop(); send !== undefined; send = sends.pop()) await send();
  });
  await Promise.all(senders);
  await expect.poll(() => linesOf(gateway, 'request').length, { timeout: 20_000 }).toBe(sendCount);
  return new Map(
    linesOf(gateway, 'request').map(({ path, settled, cost }) => [path, Number(settled ?? cost)]),
  );
}

it('a path with two meanings costs at least as much as each of them alone, however they are settled', async () => {
  const costOf = await costs(await startWithAnswers());
  const seen = PAIRS.map(({ folder, number, one, other }) => {
    const [first = 0, second = 0, both = 0] = ['x', 'y', 'x.json'].map((name) =>
      costOf.get(`${folder}/${name}`),
    );
    return { case: number, one, other, first, second, both };
  });
  expect(seen.filter(({ first, second, both }) => both < Math.max(first, second))).toEqual([]);
  // Operations that are settled by one rule cost what it says.
  const alike = seen.filter(({ one, other }) => one === other);
  expect(alike.filter(({ first, second, both }) => both !== Math.max(first, second))).toEqual([]);
  // The rules differ in what they charge, so the comparison above means something.
  expect(new Set(seen.map(({ first }) => first)).size).toBeGreaterThan(10);
}, 60_000);

it('a reservation is kept where one of the meanings is not settled, and is exceeded by a rule that says more', async () => {
  const gateway = await startSettling({
    operations: {
      maxCost: 30,
      list: [
        { method: 'GET', path: '/exq', cost: 20 },
        { method: 'GET', path: '/{any}', cost: 30, settle: { bytes: 1024 }, refundOn: ['2xx'] },
        { method: 'POST', path: '/zq', cost: 30, reserve: { json: '/m2', most: 90 } },
        { method: 'POST', path: '/{any}', cost: 30, reserve: { json: '/m1', most: 90 } },
      ],
    },
  });
  gateway.answer = (response) => response.end('x');
  await gateway.send('GET', '/exq.json');
  expect(await gateway.costOf()).toEqual({ cost: 30, settled: 30 });
  gateway.answer = (response) => response.end('x'.repeat(40 * 1024));
  await gateway.send('GET', '/exq.json');
  expect(await gateway.costOf(2)).toEqual({ cost: 30, settled: 40 });
  gateway.answer = (response) => response.end();
  await gateway.send('POST', '/zq.json', { body: '{"m2":60,"m1":1}' });
  expect(await gateway.costOf(3)).toEqual({ cost: 60 });
});
