import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readJson } from '../../../../src/operations/validation/json-text.ts';

const read = (text: string) => readJson(Buffer.from(text));

it('every JSON text that a serialiser writes is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(undefined, 1, '\t'), (json, space) => {
      const text = JSON.stringify(JSON.parse(json), undefined, space);
      expect(read(text)).toEqual({ value: JSON.parse(text) });
    }),
    {
      examples: [
        ['{"a\\\\":{"b\\"":":\\":"}}', 1],
        ['{"__proto__":{"__proto__":1}}', 1],
        ['"a\\":"', 1],
      ],
    },
  );
});

it.each([
  '{"a":1,"a":2}',
  '{"a":1,"a":1}',
  '{"a":1,"\\u0061":2}',
  '[{"b":{"a":1 , "a" : 2}}]',
  '{"a":{"x":1},"a":{"y":1}}',
  '{"__proto__":1,"__proto__":2}',
])('%s could be read as two values, and is refused', (text) => {
  expect(read(text)).toEqual({ problem: 'has an object with the same name twice' });
});

it.each(['', '{', '\ufeff{}', '{"a":1}x', "{'a':1}", '"\ud800'])('%j is not JSON', (text) => {
  expect(read(text)).toEqual({ problem: 'is not valid JSON' });
});

it('a text is nested 1,000 deep at most', () => {
  const nested = (depth: number) => read('['.repeat(depth) + ']'.repeat(depth));
  expect(nested(1_000)).toHaveProperty('value');
  for (const depth of [1_001, 200_000])
    expect(nested(depth)).toEqual({
      problem: 'is too deeply nested or too complex to be validated',
    });
});
