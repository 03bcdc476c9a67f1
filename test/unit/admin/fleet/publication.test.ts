import { expect, it } from 'vitest';
import { membersOf, readPublication, textOf } from '../../../../src/admin/fleet/publication.ts';
import type { Pulse } from '../../../../src/admin/fleet/pulse.ts';
import { UsageBatch } from '../../../../src/observe/usage/batch.ts';
import { readWindow, type Summary, Talkers } from '../../../../src/observe/usage/talkers.ts';
import { WINDOWS } from '../../../../src/observe/usage/windows.ts';
import { LIST, requestOf } from '../../../fixtures/request-context.ts';

const PULSE = { format: 1, name: 'it has "1m":{ and ,"pulse":{ in it' } as Pulse;

/** Names that look like the members of a publication. */
const NAMES = ['10s', '1m', '10m', 'trends', 'pulse', '","pulse":{'];

async function summary(): Promise<Summary> {
  const batch = new UsageBatch();
  const talkers = new Talkers(batch);
  for (const [index, name] of NAMES.entries())
    batch.requestFinished(
      Object.assign(requestOf(name, 'org_1'), { operation: { ...LIST, cost: index + 1 } }),
      0,
    );
  return talkers.summary(60_000);
}

function countIgnored() {
  let count = 0;
  return {
    add: () => void count++,
    get count() {
      return count;
    },
  };
}

it('each window is read as it is in the whole text, whatever the owners are called', async () => {
  const text = textOf(await summary(), PULSE);
  const published = readPublication(text, 0, countIgnored()) ?? expect.fail('not readable');
  for (const window of WINDOWS) {
    const whole = readWindow(JSON.parse(text), window) ?? expect.fail('not readable');
    expect(await published.summaryOf(window)).toEqual(whole);
  }
  const names = (await published.summaryOf('10m'))?.accounts.rows.map(([name]) => name);
  expect(names?.toSorted()).toEqual(NAMES.toSorted());
});

it('only the members that are asked for are read', async () => {
  const text = textOf(await summary(), PULSE);
  expect(membersOf(text)(['pulse'])).toEqual({ pulse: PULSE });
  expect(Object.keys(membersOf(text)(['1m', 'organizationOf', 'trends']) as object)).toEqual([
    ...['1m', 'organizationOf', 'trends'],
  ]);
});

it('a text of another version is read whole: in another order, with more members, or with fewer', async () => {
  const { '10s': tenSeconds, ...rest } = await summary();
  const all = { '10s': tenSeconds, ...rest, pulse: PULSE };
  const { trends, organizationOf, ...windows } = rest;
  const others: readonly object[] = [
    { pulse: PULSE, ...rest, '10s': tenSeconds },
    { later: { '10s': {}, '1m': {}, pulse: {} }, ...all },
    { '10s': { ...tenSeconds, later: { name: 1, '1m': {} } }, ...rest, pulse: PULSE },
    { ...all, trends: { ...trends, later: 1, pulse: {} }, pulse: { ...PULSE, later: { pulse: {} } } },
    { ...all, later: 1 },
    { '10s': tenSeconds, ...windows },
  ];
  for (const other of others) {
    const text = JSON.stringify(other);
    expect(membersOf(text)(['pulse']), text).toMatchObject('pulse' in other ? { pulse: PULSE } : {});
    const published = readPublication(text, 0, countIgnored()) ?? expect.fail('not readable');
    for (const window of WINDOWS)
      expect(await published.summaryOf(window), text).toEqual(readWindow(other, window));
  }
});

it.each([
  ['"1m":{"accounts"', '"1m":{"others"'],
  ['"1m":{"accounts"', '"1m":{"accounts'],
])(
  'a window that cannot be read is counted, and hides neither the others nor the pulse: %s, %s',
  async (good, bad) => {
    const text = textOf(await summary(), PULSE).replace(good, bad);
    const ignored = countIgnored();
    const published = readPublication(text, 0, ignored) ?? expect.fail('not readable');
    const before = ignored.count;
    expect(await published.summaryOf('1m')).toBeUndefined();
    expect(ignored.count - before).toBe(1);
    expect(await published.summaryOf('10m')).toBeDefined();
  },
);

it.each(['', 'null', '1', '{"10s":{', '{"10s":{},"1m":{},"10m":{}'])('%j is no publication', (text) => {
  expect(readPublication(text, 0, countIgnored())).toBeUndefined();
});
