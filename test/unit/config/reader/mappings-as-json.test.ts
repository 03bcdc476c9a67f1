import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readMappingAsJson } from '../../../../src/config/reader/plain-json.ts';
import { readYaml, type YamlText } from '../../../../src/config/reader/yaml-text.ts';

function yamlOf(text: string): YamlText {
  const yaml = readYaml(text, 'x.json');
  if ('lineOf' in yaml) return yaml;
  throw new Error(yaml.message);
}

const mappings = fc.dictionary(
  fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('__proto__', '<<', '1', 'null', 'a": "b')),
  fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' }),
);

it('a mapping in JSON has the value that YAML gives it', () => {
  fc.assert(
    fc.property(mappings, fc.constantFrom('', 2, '\t'), (mapping, space) => {
      const text = JSON.stringify(mapping, null, space);
      const read = readMappingAsJson(text);
      expect(read).toBeDefined();
      // The comment makes it a text that only YAML has.
      expect(yamlOf(`# comment\n${text}`).value).toStrictEqual(read);
    }),
  );
});

it('values in JSON have lines', () => {
  const text = JSON.stringify({ a: { b: [1, { c: 2 }] }, d: 3 }, null, 2);
  const { value, lineOf } = yamlOf(text);
  expect(value).toEqual(JSON.parse(text));
  expect([lineOf(['a', 'b', '1', 'c']), lineOf(['d'])]).toEqual([6, 10]);
});

it.each(['{"a": 1, "a": 2}', '{"a": [{"b": 1, "b": 2}]}', '{"a": 1, "\\u0061": 2}', '{"a":":","a":"\\":"}'])(
  'a key that is written twice is a problem: %s',
  (text) => {
    expect(readMappingAsJson(text)).toBeUndefined();
    expect(() => yamlOf(text)).toThrow(/twice|duplicated/);
  },
);

it('a number that is too large is a text, as in YAML', () => {
  expect(yamlOf('{"a": [1e999, -1e999]}').value).toEqual({ a: ['1e999', '-1e999'] });
});

it('as many levels are read as in YAML', () => {
  const levels = (most: number) => `{"a": ${'['.repeat(most - 1)}1${']'.repeat(most - 1)}}`;
  expect(yamlOf(levels(98)).value).toBeDefined();
  expect(() => yamlOf(levels(99))).toThrow('nesting');
  expect(() => yamlOf(levels(100_000))).toThrow('nesting');
});

it.each(['{a: 1}', '{"a": 1,}', '{"a": 1} # comment', '["a"]', '"a"', '{"a": 01}', '\ufeff{"a": 1} '])(
  'other texts are left to YAML: %s',
  (text) => {
    expect(readMappingAsJson(text)).toBeUndefined();
    yamlOf(text);
  },
);
