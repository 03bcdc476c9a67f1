import { expect, it } from 'vitest';
import { BLOCKS, type Block, Blocks } from '../../../src/facts/blocks.ts';

const block = (atMs: number, untilMs = 1_000): Block => ({
  scope: 'account',
  id: 'a',
  atMs,
  untilMs,
  why: 'test',
  by: 'me',
});

it('the latest change wins, whatever the order of arrival, and ends at its end', () => {
  const changes = [block(1), { ...block(2), isRemoved: true }, block(3, 900)];
  for (const order of [changes, changes.toReversed()]) {
    let nowMs = 0;
    const blocks = new Blocks({ nowMs: () => nowMs });
    for (const change of order) blocks.add(change, 0);
    expect(blocks.of('account', 'a')?.untilMs).toBe(900);
    expect(blocks.of('principal', 'a')).toBeUndefined();
    nowMs = 900;
    expect(blocks.of('account', 'a')).toBeUndefined();
    expect(blocks.inForce(nowMs)).toEqual([]);
  }
});

it('a message arrives as it was sent, and anything else is refused', () => {
  for (const one of [block(1), { ...block(2), isRemoved: true }])
    expect(BLOCKS.read(BLOCKS.write(one), 0)).toEqual(one);
  const wrong = [
    { ...block(1), scope: 'team' },
    { ...block(1), id: 'with a space' },
    { ...block(1), why: '' },
    { ...block(1), why: undefined },
    { ...block(1), untilMs: 8 * 86_400_000 },
    { ...block(1), atMs: 3 * 86_400_000, untilMs: 3 * 86_400_000 + 1 },
    [],
    null,
  ];
  for (const one of wrong) expect(BLOCKS.read(JSON.stringify(one), 0), JSON.stringify(one)).toBeUndefined();
  expect(BLOCKS.read('{', 0)).toBeUndefined();
});
