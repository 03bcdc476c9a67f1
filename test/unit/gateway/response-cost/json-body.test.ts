import { expect, test } from 'vitest';
import { JsonPointer } from '../../../../src/domain/settlement/json-pointer.ts';
import { CollectedBytes, MOST_KEPT } from '../../../../src/gateway/response-cost/collected-bytes.ts';
import { JsonBody } from '../../../../src/gateway/response-cost/json-body.ts';
import type { FoundPoints } from '../../../../src/gateway/response-cost/json-bytes.ts';
import { inPiecesOf } from '../../../fixtures/settling.ts';

const LONG_TEXT = 'x'.repeat(MOST_KEPT);

function read(body: string, pointer: string, pieceBytes = 65_536): FoundPoints | 'too-long' {
  const reader = new JsonBody(new JsonPointer(pointer));
  for (const piece of inPiecesOf(Buffer.from(body), pieceBytes)) reader.add(piece, false);
  const { points, problem } = reader.end(true);
  expect(points === undefined || problem === undefined).toBe(true);
  return points ?? (problem as 'missing' | 'invalid' | 'too-long');
}

test.each<[string, string, FoundPoints | 'too-long']>([
  ['{"usage":{"n":5},"x":"…"}', '/usage/n', 5],
  [' { "usage" : { "n" : 5 } , "x":"…"}', '/usage/n', 5],
  ['{"usage":{"n":5,"x":"…"}}', '/usage/n', 5],
  ['{"usage":{"n":5,"x":[[{"n":6},"…"]]}}', '/usage/n', 5],
  ['{"a":{"n":6},"usage":{"m":{"n":6},"n":5},"b":{"n":6},"x":"…"}', '/usage/n', 5],
  ['{"a":"\\"usage\\":{\\"n\\":6}","usage":{"n":5},"b":"\\"usage\\":6","x":"…"}', '/usage/n', 5],
  ['{"usage":{"n":0},"x":"…"}', '/usage/n', 0],
  ['{"usage":{"n":"5"},"x":"…"}', '/usage/n', 'invalid'],
  ['{"usage":{"n":null},"x":"…"}', '/usage/n', 'too-long'],
  ['{"usage":{},"x":"…"}', '/usage/n', 'too-long'],
  ['{"a":{"usage":{"n":6}},"x":"…"}', '/usage/n', 'too-long'],
  ['{"x":"…","usage":{"n":5}}', '/usage/n', 'too-long'],
  // The last one in the first MiB counts.
  ['{"usage":{"n":4},"usage":{"n":5},"x":"…"}', '/usage/n', 5],
  ['{"usage":{"n":5},"usage":{"m":4},"x":"…"}', '/usage/n', 'too-long'],
  ['{"usage":{"n":5},"x":"…","usage":{"n":6}}', '/usage/n', 5],
  // The last of several texts stands behind the first MiB.
  ['{"usage":{"n":5}}\n{"usage":{"n":6},"x":"…"}', '/usage/n', 'too-long'],
  ['{"usage":{"n":5}}\n"…"', '/usage/n', 'too-long'],
  ['[{"usage":{"n":5},"x":"…"}]', '/usage/n', 'too-long'],
  ['<p>{"usage":{"n":5},"x":"…"}</p>', '/usage/n', 'too-long'],
  ['{"usage":{"0":5},"x":"…"}', '/usage/0', 5],
  ['{"usage":[5],"x":"…"}', '/usage/0', 'too-long'],
  ['{"größe":5,"x":"…"}', '/größe', 'too-long'],
])('of a body that is longer than 1 MiB, the beginning is read: %s at %s is %s', (body, pointer, found) => {
  expect(read(body.replaceAll('…', LONG_TEXT), pointer)).toBe(found);
});

test.each<[string, string, FoundPoints]>([
  ['{"usage":{"n":5},"x":"', '/usage/n', 5],
  ['{"usage":{"n":5', '/usage/n', 'missing'],
  ['{"x":{"usage":{"n":6}}', '/usage/n', 'missing'],
  ['{"usage":{"n":5}}', '/usage/n', 5],
  ['{"usage":{"n":4}}\n{"usage":{"n":5}}\n', '/usage/n', 5],
  ['{"usage":{"n":4}}\n{"usage":{"n":5},"x"', '/usage/n', 5],
  ['{"usage":{"n":5}}\n{"usage"', '/usage/n', 'missing'],
  ['{"usage":[5]}', '/usage/0', 5],
  ['{"usage":[5],', '/usage/0', 'missing'],
])('a text that breaks off has stated what came before: %s at %s is %s', (body, pointer, found) => {
  const reader = new JsonBody(new JsonPointer(pointer));
  reader.add(Buffer.from(body), false);
  const { points, problem } = reader.end(false);
  expect(points ?? problem).toBe(found);
});

test('a number counts if it ends in the first MiB', () => {
  const start = '{"x":"';
  const member = '","n":812';
  for (const [bytes, found] of [
    [MOST_KEPT - 1, 812],
    [MOST_KEPT, 'too-long'],
    [MOST_KEPT + 1, 'too-long'],
    [MOST_KEPT + 2, 'too-long'],
    [MOST_KEPT + 3, 'too-long'],
  ] as const) {
    const text = LONG_TEXT.slice(start.length + member.length - (bytes - MOST_KEPT));
    const body = `${start}${text}${member},"m":1}`;
    expect(body.indexOf(',"m"')).toBe(bytes);
    for (const pieceBytes of [65_536, 65_535, 7_001, MOST_KEPT])
      expect(read(body, '/n', pieceBytes), `${bytes}`).toBe(found);
  }
});

test.each(['n', 'm'])('nothing of a longer body is kept once its beginning was searched for /%s', (name) => {
  const body = Buffer.from(`{"n":5,"x":"${LONG_TEXT}`);
  for (let count = 0; count < 64; count++) new JsonBody(new JsonPointer(`/${name}`)).add(body, false);
  const other = new CollectedBytes();
  expect(other.add(Buffer.alloc(MOST_KEPT))).toBeUndefined();
  other.release();
});
