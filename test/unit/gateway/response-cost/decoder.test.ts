import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { JsonPointer } from '../../../../src/domain/settlement/json-pointer.ts';
import { MOST_KEPT } from '../../../../src/gateway/response-cost/collected-bytes.ts';
import { Decoder } from '../../../../src/gateway/response-cost/decoder.ts';
import { EventStream } from '../../../../src/gateway/response-cost/event-stream.ts';
import { JsonBody } from '../../../../src/gateway/response-cost/json-body.ts';
import { random } from '../../../fixtures/random.ts';

/** Digits, which do not compress well: it is no bomb. */
function longText(): Buffer {
  const next = random(1);
  return Buffer.from(Uint8Array.from({ length: 4 * MOST_KEPT }, () => 0x30 + next(10)));
}

const LONG = gzipSync(longText());

it.each([
  ['a JSON body', JsonBody],
  ['an event', EventStream],
])('nothing more is decoded once %s is too long', async (_, Reader) => {
  const reader = new Reader(new JsonPointer('/usage/total_tokens'));
  let decodedBytes = 0;
  const decoder = Decoder.of('gzip', (decoded) => {
    decodedBytes += decoded.length;
    return reader.add(decoded, false);
  });
  decoder?.add(LONG);
  expect(await decoder?.end()).toBe('too-long');
  expect(decodedBytes).toBeLessThan(1.5 * MOST_KEPT);
  expect(reader.end(false)).toEqual({ points: undefined, problem: 'too-long' });
});

it('nothing more is decoded once there is no memory for it', async () => {
  let calls = 0;
  const decoder = Decoder.of('gzip', () => {
    calls++;
    return 'memory';
  });
  decoder?.add(LONG);
  decoder?.add(LONG);
  expect(await decoder?.end()).toBe('memory');
  expect(calls).toBe(1);
});
