import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { JsonPointer } from '../../../../src/domain/settlement/json-pointer.ts';
import { EventStream } from '../../../../src/gateway/response-cost/event-stream.ts';
import type { FoundPoints } from '../../../../src/gateway/response-cost/json-bytes.ts';
import { pointsInParsed } from '../../../../src/gateway/response-cost/member.ts';
import { inPiecesOf } from '../../../fixtures/settling.ts';

/** The last name is plain, an index, empty, or has other characters. */
const POINTERS = ['/n', '/u/n', '/0', '/u/0', '/u/1', '/0/0', '/', '/u/', '/größe', '/u/a~1b', '/u/a b'];
const LINE_ENDS = ['\n', '\r\n', '\r'];

const toText = Buffer.prototype.toString;

/** @throws Error if it looks at more events than the stream has bytes */
function read(text: string, pointer: string, pieceBytes: number): FoundPoints {
  const stream = Buffer.from(text);
  let looks = 0;
  const spy = vi.spyOn(Buffer.prototype, 'toString').mockImplementation(function (this: Buffer, ...span) {
    if (++looks > stream.length) throw new Error(`${looks} looks at ${JSON.stringify(text)}`);
    return toText.apply(this, span);
  });
  try {
    const reader = new EventStream(new JsonPointer(pointer));
    for (const piece of inPiecesOf(stream, pieceBytes)) reader.add(piece);
    const { points, problem } = reader.end();
    return points ?? (problem as 'missing' | 'invalid');
  } finally {
    spy.mockRestore();
  }
}

/** Reads the stream from its beginning, line by line. */
function expected(text: string, pointer: string): FoundPoints {
  let found: FoundPoints = 'missing';
  let data: string[] = [];
  for (const line of [...text.split(/\r\n|\n|\r/), '']) {
    if (line.startsWith('data:')) data.push(line.slice('data:'.length));
    if (line !== '') continue;
    const ofEvent = pointsInParsed(data.join('\n'), new JsonPointer(pointer));
    if (ofEvent !== 'missing') found = ofEvent;
    data = [];
  }
  return found;
}

const names = fc.constantFrom('n', 'u', '0', '1', '', 'größe', 'a/b', 'a b');
const values = fc.oneof(
  fc.nat(9),
  fc.constantFrom(null, 'n', '0', -1),
  fc.array(fc.nat(9), { maxLength: 2 }),
);
const documents = fc.dictionary(names, fc.oneof(values, fc.dictionary(names, values)));
const lines = fc.oneof(
  { weight: 3, arbitrary: documents.map((document) => `data: ${JSON.stringify(document)}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', ':', 'data', 'data:', 'data: [DONE]', 'data: {"n":', 'id: "n"', '0'),
  },
);
/** Every line has an end, or none at the end of the stream; two ends are an empty line. */
const streams = fc
  .array(fc.tuple(lines, fc.constantFrom(...LINE_ENDS), fc.constantFrom(...LINE_ENDS, '')), { maxLength: 8 })
  .chain((all) =>
    fc.constantFrom('', ...LINE_ENDS, '\n\n', '\r\r', '\r\n\r\n', '\n\r\n\r').map((end) => ({ all, end })),
  )
  .map(({ all, end }) => all.map((line) => line.join('')).join('') + end);

test.each(POINTERS)(
  'the last event with %s counts, whatever the stream is and however it ends',
  (pointer) => {
    fc.assert(
      fc.property(streams, fc.integer({ min: 1, max: 400 }), (stream, pieceBytes) => {
        expect(read(stream, pointer, pieceBytes)).toBe(expected(stream, pointer));
      }),
      { numRuns: 300 },
    );
  },
);

test.each(POINTERS)('a stream of nothing but ends of lines has no %s', (pointer) => {
  for (const end of [...LINE_ENDS, '\n\r', '\r\r\n'])
    for (const count of [1, 2, 3, 4, 5])
      for (const pieceBytes of [1, 2, 100])
        expect(read(end.repeat(count), pointer, pieceBytes)).toBe('missing');
});
