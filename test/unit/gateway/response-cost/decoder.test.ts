import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { JsonPointer } from '../../../../src/domain/settlement/json-pointer.ts';
import { MOST_KEPT } from '../../../../src/gateway/response-cost/collected-bytes.ts';
import { Decoder } from '../../../../src/gateway/response-cost/decoder.ts';
import { JsonBody } from '../../../../src/gateway/response-cost/json-body.ts';
import { random } from '../../../fixtures/random.ts';

/** Digits, which do not compress well: it is no bomb. */
function longText(): Buffer {
  const next = random(1);
  return Buffer.from(Uint8Array.from({ length: 4 * MOST_KEPT }, () => 0x30 + next(10)));
}

const LONG = gzipSync(longText());
const LONG_WITH_COST = gzipSync(`{"usage":{"total_tokens":5},"data":"${longText()}"}`);

it.each([
  ['is not in the first MiB', LONG, 'too-long', { points: undefined, problem: 'too-long' }],
  ['was found in the first MiB', LONG_WITH_COST, 'found', { points: 5, problem: undefined }],
])('nothing more of a JSON body is decoded once its cost %s', async (_, body, stoppedBy, reading) => {
  const reader = new JsonBody(new JsonPointer('/usage/total_tokens'));
  let decodedBytes = 0;
  const decoder = Decoder.of('gzip', (decoded) => {
    decodedBytes += decoded.length;
    return reader.add(decoded, false);
  });
  decoder?.add(body);
  expect(await decoder?.end()).toBe(stoppedBy);
  expect(decodedBytes).toBeLessThan(1.5 * MOST_KEPT);
  expect(reader.end(false)).toEqual(reading);
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
