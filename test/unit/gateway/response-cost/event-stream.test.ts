import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { JsonPointer } from '../../../../src/domain/settlement/json-pointer.ts';
import { CollectedBytes, MOST_KEPT } from '../../../../src/gateway/response-cost/collected-bytes.ts';
import { EventStream } from '../../../../src/gateway/response-cost/event-stream.ts';
import type { FoundPoints } from '../../../../src/gateway/response-cost/json-bytes.ts';
import { pointsInParsed } from '../../../../src/gateway/response-cost/member.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';
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
      { numRuns: generatedCases(300) },
    );
  },
);

test.each(POINTERS)('a stream of nothing but ends of lines has no %s', (pointer) => {
  for (const end of [...LINE_ENDS, '\n\r', '\r\r\n'])
    for (const count of [1, 2, 3, 4, 5])
      for (const pieceBytes of [1, 2, 100])
        expect(read(end.repeat(count), pointer, pieceBytes)).toBe('missing');
});

/** An event of so many bytes, without an empty line behind it. */
const eventOf = (bytes: number, behind = '') => {
  const start = 'data: {"n":1,"text":"';
  return `${start}${'x'.repeat(bytes - start.length - behind.length)}${behind}`;
};
const readPieces = (pieces: Iterable<Buffer>) => {
  const reader = new EventStream(new JsonPointer('/n'));
  for (const piece of pieces) reader.add(piece);
  return reader.end();
};
/** Between any two bytes, apart from the long text. */
const cutEverywhere = (text: string) =>
  (text.match(/x{1,65536}|./gs) ?? []).map((piece) => Buffer.from(piece));

test.each(LINE_ENDS)('an event may have 1 MiB, with %j and however it is cut', (end) => {
  const whole = eventOf(MOST_KEPT, `"}${end}${end}`);
  const other = `data: {"m":1}${end}${end}`;
  const longer = `data: {"n":2}${end}${end}${whole.replace('x', 'xxx')}${other}`;
  for (const cut of [cutEverywhere, (text: string) => inPiecesOf(Buffer.from(text), 65_536)]) {
    expect(readPieces(cut(other + whole + other))).toEqual({ points: 1, problem: undefined });
    expect(readPieces(cut(longer))).toEqual({ points: 2, problem: 'too-long' });
  }
});

test.each(LINE_ENDS)('the events behind a longer one are read, with %j and however it is cut', (end) => {
  // What looks like an event is a line of the longer one.
  const long = `${eventOf(MOST_KEPT)}${end}data: {"n":3}${end}${end}`;
  for (const [behind, reading] of [
    ['', { points: undefined, problem: 'too-long' }],
    [`data: {"m":1}${end}${end}`, { points: undefined, problem: 'too-long' }],
    [`data: {"n":4}${end}${end}data: [DONE]`, { points: 4, problem: undefined }],
    [`data: {"n":"4"}${end}${end}`, { points: undefined, problem: 'invalid' }],
    [`data: {"n":4}${end}${end}${long}`, { points: 4, problem: 'too-long' }],
    [`${long}data: {"n":4}`, { points: 4, problem: undefined }],
  ] as const)
    for (const cut of [cutEverywhere, (text: string) => inPiecesOf(Buffer.from(text), 65_536)])
      expect(readPieces(cut(long + behind))).toEqual(reading);
});

/** So many bodies of 1 MiB fit into the memory. */
const MOST_BODIES = 64;

test('the beginning of an event that is too long is not kept', () => {
  const long = Buffer.from(eventOf(MOST_KEPT + 1));
  for (let count = 0; count < MOST_BODIES; count++) {
    const reader = new EventStream(new JsonPointer('/n'));
    for (const piece of [long, long]) reader.add(piece);
  }
  const other = new CollectedBytes();
  expect(other.add(Buffer.alloc(MOST_KEPT))).toBeUndefined();
  other.release();
});

test.each([
  ['data: {"m":4}', { points: 1, problem: 'memory' }],
  ['data: {"n":4}', { points: 4, problem: undefined }],
])('an event for which there was no memory is skipped, and %s behind it is read', (behind, reading) => {
  const others = Array.from({ length: MOST_BODIES }, () => new CollectedBytes());
  for (const other of others) other.add(Buffer.alloc(MOST_KEPT));
  const reader = new EventStream(new JsonPointer('/n'));
  reader.add(Buffer.from('data: {"n":1}\n\ndata: {"n"'));
  for (const other of others) other.release();
  for (const piece of [':2}\nda', 'ta: {"n":3}\n\nda', behind.slice(2)]) reader.add(Buffer.from(piece));
  expect(reader.end()).toEqual(reading);
});
