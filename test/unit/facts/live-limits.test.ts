import { expect, it } from 'vitest';
import { LIVE_LIMITS, type LiveLimit, LiveLimits } from '../../../src/facts/live-limits.ts';

const readLiveLimit = (text: string) => LIVE_LIMITS.read(text, 0);

const set = (limit: number, atMs: number, untilMs = 1_000): LiveLimit => ({
  bucket: 'account-read',
  id: 'a',
  limit,
  atMs,
  untilMs,
  why: 'test',
  by: 'me',
});

it('the latest change wins, whatever the order of arrival', () => {
  const changes = [set(5, 1), { ...set(5, 2), isRemoved: true }, set(7, 3)];
  for (const order of [changes, changes.toReversed(), [...changes, ...changes]]) {
    const limits = new LiveLimits();
    for (const change of order) limits.add(change, 0);
    expect(limits.of('account-read', 'a', 10)?.limit).toBe(7);
    expect(limits.of('account-write', 'a', 10)).toBeUndefined();
    expect(limits.inForce(10)).toHaveLength(1);
  }
  const removed = new LiveLimits();
  for (const change of changes.slice(0, 2).toReversed()) removed.add(change, 0);
  expect(removed.of('account-read', 'a', 10)).toBeUndefined();
  expect(removed.missingFrom(new Set(), 10)).toHaveLength(1);
});

it('nothing is in force or remembered after its end', () => {
  const limits = new LiveLimits();
  expect(limits.add(set(5, 1), 0)).toBe(true);
  expect(limits.of('account-read', 'a', 999)?.limit).toBe(5);
  expect(limits.of('account-read', 'a', 1_000)).toBeUndefined();
  expect(limits.missingFrom(new Set(), 1_000)).toEqual([]);
  expect(limits.add(set(5, 2, 1_000), 1_000)).toBe(false);
});

it('a message arrives as it was sent, and anything else is refused', () => {
  for (const limit of [set(5, 1), { ...set(5, 2), isRemoved: true }])
    expect(readLiveLimit(LIVE_LIMITS.write(limit))).toEqual(limit);
  const without = (member: keyof LiveLimit) => JSON.stringify({ ...set(5, 1), [member]: undefined });
  for (const text of [
    '',
    '{',
    'null',
    '[]',
    '5',
    without('bucket'),
    without('id'),
    without('untilMs'),
    without('why'),
  ])
    expect(readLiveLimit(text), text).toBeUndefined();
  expect(readLiveLimit(JSON.stringify(set(0, 1)))).toBeUndefined();
  expect(readLiveLimit(JSON.stringify(set(1.5, 1)))).toBeUndefined();
  expect(readLiveLimit(JSON.stringify({ ...set(5, 1), bucket: 'team read' }))).toBeUndefined();
});
