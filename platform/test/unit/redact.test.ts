import { expect, test } from 'vitest';
import { expectLinearTime } from '../../../test/fixtures/growth.ts';
import { redactedBody, storableText } from '../../src/deliveries/redact.ts';

test.each([
  ['{"password":"hunter2","ok":true}', '{"password":"[redacted]","ok":true}'],
  ['{"access_token": "a\\"b", "n": 1}', '{"access_token": "[redacted]", "n": 1}'],
  ['client_secret=abc&next=1', 'client_secret=[redacted]&next=1'],
  ['Authorization: Bearer abc.def-1', 'Authorization: [redacted]'],
  ['got wk_3fA9Zr0mT1c8 and whsec_C2FVsBQIhrsc', 'got [redacted] and [redacted]'],
  ['id eyJhbGciOi.eyJzdWIiOi.c2ln, done', 'id [redacted], done'],
  ['eyJa..eyJb.c.d.e', 'eyJa..[redacted].e'],
  ['a=password=hunter2', 'a=password=[redacted]'],
  ['no secret here, token', 'no secret here, token'],
  ['nul\0l', 'null'],
])('%s is shown as %s', (text, shown) => {
  expect(redactedBody(text)).toBe(shown);
});

test('a long body is cut after it was redacted', () => {
  const text = redactedBody(`${'x'.repeat(2040)}{"token":"${'s'.repeat(100)}"}`);
  expect(text.length).toBe(2049);
  expect(text).not.toContain('ss');
});

test('a long body is cut between characters', () => {
  const text = redactedBody(`${'x'.repeat(2047)}😀😀`);
  expect(text).toBe(`${'x'.repeat(2047)}…`);
});

test('a text is stored without NUL and without half a character', () => {
  expect(storableText('a\0b\ud83dc\ude00😀')).toBe('ab\ufffdc\ufffd😀');
});

test.each(['token', '-eyJ', 'eyJa.', 'Bearer ', 'token:', 'token ', '"token":"', '\\"token', 'wk_', ' '])(
  'a body of %j is read once',
  (unit) => {
    expectLinearTime((size) => {
      const text = unit.repeat(size);
      return () => redactedBody(text);
    }, 1_000);
  },
);
