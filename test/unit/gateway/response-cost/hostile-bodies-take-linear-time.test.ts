import { expect, test } from 'vitest';
import { JsonPointer } from '../../../../src/domain/settlement/json-pointer.ts';
import { EventStream } from '../../../../src/gateway/response-cost/event-stream.ts';
import { JsonBody } from '../../../../src/gateway/response-cost/json-body.ts';
import { generatedCombinations } from '../../../fixtures/generated-cases.ts';
import { expectLinearTime } from '../../../fixtures/growth.ts';
import { inPiecesOf } from '../../../fixtures/settling.ts';

/** The longest of them have less than 1 MiB. */
const BYTES = 30_000;
const repeated = (text: string, bytes: number) => text.repeat(Math.ceil(bytes / text.length));

const TEXTS: Readonly<Record<string, (bytes: number) => string>> = {
  'arrays in arrays': (bytes) => repeated('[', bytes / 2) + repeated(']', bytes / 2),
  'objects in objects': (bytes) => `${repeated('{"usage":', bytes)}1${repeated('}', bytes / 9)}`,
  'brackets that are not closed': (bytes) => repeated('{"usage":[', bytes),
  'brackets that were not opened': (bytes) => repeated(']}', bytes),
  'a number of many digits': (bytes) => `{"usage":{"total_tokens":${repeated('9', bytes)}}}`,
  'a fraction of many digits': (bytes) => `{"usage":{"total_tokens":0.${repeated('0', bytes)}1}}`,
  'the name in every member': (bytes) => `{${repeated('"usage":{"total_tokens":""},', bytes)}"a":1}`,
  'the name in a text': (bytes) => `{"a":"${repeated('\\"total_tokens\\":1,', bytes)}"}`,
  'the name as a value': (bytes) => `{${repeated('"a":"usage",', bytes)}"a":1}`,
  'spaces behind the name': (bytes) => `{${repeated(`"usage"${' '.repeat(500)}:1,`, bytes)}"a":1}`,
  'many objects with the name': (bytes) => `${repeated('{"usage":{"total_tokens":1}} ', bytes)}{}`,
  'reverse solidi before a quotation mark': (bytes) => `{"usage":"${repeated('\\', bytes)}"}`,
  'quotation marks': (bytes) => repeated('"', bytes),
  'arrays with arrays in them': (bytes) => `${repeated('[[],{}] ', bytes)}[]`,
  'strings between closing brackets': (bytes) => repeated('"\\\\"]', bytes),
  'empty lines': (bytes) => repeated('\n', bytes),
  'lines of half an event': (bytes) => repeated('data: {"total_tokens":\n', bytes),
  'events with the name': (bytes) => repeated('data: "total_tokens"\n\n', bytes),
  'an event of many lines': (bytes) => `${repeated('data: "total_tokens"\n', bytes)}\n`,
};

const MEMBER = '/usage/total_tokens';
const READERS = { 'a JSON body': JsonBody, 'server-sent events': EventStream };
const CASES = Object.entries(READERS).flatMap(([kind, Reader]) =>
  [MEMBER, '/usage/0/total_tokens', '/usage/0', '/usage/größe'].flatMap((pointer) =>
    Object.entries(TEXTS).map(([name, textOf]) => ({ kind, Reader, pointer, name, textOf })),
  ),
);

const read = (Reader: typeof JsonBody | typeof EventStream, pieces: readonly Buffer[], pointer = MEMBER) => {
  const reader = new Reader(new JsonPointer(pointer));
  for (const piece of pieces) reader.add(piece, false);
  return reader.end(true);
};

// Of 19 texts, every fifth combination has each of them.
test.each(generatedCombinations(CASES))('$kind, $pointer: $name', ({ Reader, pointer, textOf }) => {
  for (const pieceBytes of [16_384, 100])
    expectLinearTime((bytes) => {
      const pieces = [...inPiecesOf(Buffer.from(textOf(bytes)), pieceBytes)];
      return () => read(Reader, pieces, pointer);
    }, BYTES);
});

test('a number of 100 MB is too long, and the rest of it is not kept', () => {
  const digits = Buffer.alloc(65_536, '9');
  for (const Reader of Object.values(READERS)) {
    const start = Buffer.from('data: {"usage":{"total_tokens":');
    const reading = read(Reader, [start, ...Array<Buffer>(1_526).fill(digits)]);
    expect(reading).toEqual({ points: undefined, problem: 'too-long' });
  }
});
