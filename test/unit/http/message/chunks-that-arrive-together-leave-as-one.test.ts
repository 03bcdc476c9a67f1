import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ChunkedDecoder } from '../../../../src/http/message/chunked-decoder.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';

/** The pieces in which a decoder gives what it reads in one read, or in two. */
function piecesOf(text: string, cut = text.length): string[] {
  const decoder = new ChunkedDecoder();
  const pieces: string[] = [];
  const receiver = { onChunkData: (bytes: Buffer) => void pieces.push(bytes.toString('latin1')) };
  const bytes = Buffer.from(text, 'latin1');
  const read = decoder.read(bytes, 0, cut, receiver);
  if (!decoder.isDone) decoder.read(bytes, read, bytes.length, receiver);
  expect(decoder.isDone).toBe(true);
  return pieces;
}

it('ten thousand chunks of one byte are one piece', () => {
  expect(piecesOf(`${'1\r\nx\r\n'.repeat(10_000)}0\r\n\r\n`)).toEqual(['x'.repeat(10_000)]);
});

it('every byte arrives in order, wherever one read ends and the next begins', () => {
  const chunk = fc.record({
    data: fc.string({ minLength: 1, maxLength: 100, unit: 'binary-ascii' }),
    extension: fc.constantFrom('', '', ';a', ';a="\\"b"', ';a=b;c'),
  });
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 20 }), fc.nat(), (chunks, place) => {
      const lines = chunks.map(
        ({ data, extension }) => `${data.length.toString(16)}${extension}\r\n${data}\r\n`,
      );
      const text = `${lines.join('')}0\r\n\r\n`;
      const pieces = piecesOf(text, place % (text.length + 1));
      expect(pieces.join('')).toBe(chunks.map(({ data }) => data).join(''));
      // At most the chunks in front of the cut, both parts of the one at the cut, and the chunks behind it.
      expect(pieces.length).toBeLessThanOrEqual(4);
    }),
    { numRuns: generatedCases(2_000) },
  );
});
