import { expect, it } from 'vitest';
import { KnownKeys } from '../../../../../src/gateway/decisions/api/known-keys.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = 1_800_000_000_000.37;
const KEY = 'k'.repeat(43);

it('a key whose end is too far away is recorded by no look as another message', () => {
  const record = new Set([`${KEY} 253402300799999`]);
  const keys = new KnownKeys();
  for (let look = 0; look < 720; look++) {
    const nowMs = NOW_MS + look * 5_000;
    for (const text of record) keys.take(text, nowMs);
    for (const { text } of keys.missingFrom(record, nowMs)) record.add(text);
  }
  expect([...record]).toEqual([`${KEY} 253402300799999`]);
});

it('a record that has lost such a key gets one message, which a replica can read', () => {
  const keys = new KnownKeys();
  keys.take(`${KEY} 253402300799999`, NOW_MS);
  const [message, ...others] = keys.missingFrom(new Set(), NOW_MS);
  expect(others).toEqual([]);
  expect(new KnownKeys().take(message?.text ?? '', NOW_MS)).toBe(true);
});

it('a key that is used for longer is recorded again', () => {
  const keys = new KnownKeys();
  keys.use(KEY, NOW_MS);
  const [first] = keys.missingFrom(new Set(), NOW_MS);
  const record = new Set([first?.text ?? '']);
  expect(keys.missingFrom(record, NOW_MS)).toEqual([]);
  keys.use(KEY, NOW_MS + HOUR_MS);
  expect(keys.missingFrom(record, NOW_MS + HOUR_MS)).toHaveLength(1);
});
