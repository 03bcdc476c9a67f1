import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FieldErrors } from '../../../../src/domain/field-errors.ts';
import { checkBody } from '../../../../src/operations/validation/body.ts';
import { type ApiFolder, apiFolder, openapi } from '../../../fixtures/api-files.ts';
import { expectLinearTime, expectWithin } from '../../../fixtures/growth.ts';

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder();
});
afterEach(() => folder.remove());

/** A schema, and the body of a size that makes it work hardest. */
interface Case {
  readonly schema: object;
  readonly body: (size: number) => string;
}

const list = (size: number, item: (index: number) => string) =>
  `[${Array.from({ length: size }, (_, index) => item(index)).join()}]`;
/** Lists in one another, 50 deep, around a list of numbers that is as long as `size`. */
const nested = (size: number) => `${'[0,'.repeat(50)}${list(size, String)}${']'.repeat(50)}`;
const chain = (size: number) => `${'{"next":'.repeat(size)}1${'}'.repeat(size)}`;
const node = { $ref: '#/components/schemas/Node' };

/** Each is quadratic or worse for a validator that follows the keywords as they are written. */
const CASES: Readonly<Record<string, Case>> = {
  'uniqueItems of numbers': { schema: { uniqueItems: true }, body: (size) => list(size, String) },
  'uniqueItems of objects': {
    schema: { type: 'array', uniqueItems: true },
    body: (size) => list(size, (index) => `{"a":[${index}],"b":{"c":1}}`),
  },
  'uniqueItems of lists in lists': {
    schema: { $ref: '#/components/schemas/Unique' },
    body: nested,
  },
  'a pattern that backtracks': {
    schema: { pattern: '^(a+)+$' },
    body: (size) => `"${'a'.repeat(5 * size)}!"`,
  },
  'names by a pattern that backtracks': {
    schema: { patternProperties: { '^(\\w+\\s?)*$': { type: 'number' } } },
    body: (size) => `{"${'word '.repeat(size)}!":""}`,
  },
  'the format url': { schema: { format: 'url' }, body: (size) => `"http://${'a@'.repeat(3 * size)}"` },
  'the format email': { schema: { format: 'email' }, body: (size) => `"a@${'a-'.repeat(3 * size)}"` },
  'the format uri': { schema: { format: 'uri' }, body: (size) => `"http://${'a:'.repeat(3 * size)} "` },
};

const NAMES = Array.from({ length: 200 }, (_, index) => `p${index}`);
const needs = (...required: string[]) => ({ type: 'object', required });
const six = NAMES.slice(0, 6).map((name) => needs(name));
const empty = (bytes: number) => list(bytes / 3, () => '{}');

/** Each finds several errors for each byte. The size of a body is in bytes. */
const MANY_ERRORS: Readonly<Record<string, Case>> = {
  oneOf: { schema: { items: { oneOf: six } }, body: empty },
  'oneOf within oneOf': {
    schema: {
      items: { oneOf: six.map((one) => ({ oneOf: six.map((other) => ({ anyOf: [one, other] })) })) },
    },
    body: empty,
  },
  'branches before the one that is valid': {
    schema: { items: { anyOf: [...six, needs()] } },
    body: (bytes) => `[${'{},'.repeat(bytes / 3)}1]`,
  },
  'many required properties': { schema: { items: needs(...NAMES) }, body: empty },
  'many dependent properties': {
    schema: { items: { dependentRequired: { a: NAMES } } },
    body: (bytes) => list(bytes / 8, () => '{"a":1}'),
  },
  'if, then and else': {
    schema: { items: { if: needs('a'), else: { anyOf: [needs('b'), needs('c')] } } },
    body: empty,
  },
  contains: { schema: { contains: { oneOf: six } }, body: empty },
  'unevaluated items': { schema: { prefixItems: [{}], unevaluatedItems: { oneOf: six } }, body: empty },
  'unknown properties': {
    schema: { additionalProperties: false },
    body: (bytes) => `{${Array.from({ length: bytes / 11 }, (_, index) => `"${1e6 + index}":1`)}}`,
  },
  'long paths': {
    schema: { $ref: '#/components/schemas/Closed' },
    body: (bytes) =>
      `${'[{"a":'.repeat(bytes / 40)}${list(bytes / 10, () => '{"z":1}')}${'}]'.repeat(bytes / 40)}`,
  },
};

const closed = { $ref: '#/components/schemas/Closed' };
const SCHEMAS = {
  Closed: { properties: { a: closed }, items: closed, additionalProperties: false },
  Unique: { type: ['array', 'number'], uniqueItems: true, items: { $ref: '#/components/schemas/Unique' } },
  Node: {
    type: ['object', 'number'],
    anyOf: [
      { allOf: [{ properties: { next: node } }, { required: ['a'] }] },
      { allOf: [{ properties: { next: node } }, { required: ['b'] }] },
      { properties: { next: node } },
    ],
  },
};

/** Judges a body as the gateway does. */
async function judge(schema: object): Promise<(body: Buffer) => FieldErrors> {
  const content = JSON.stringify({ 'application/json': { schema } });
  const paths = `/a: { post: { x-weir: { validate: body }, requestBody: { content: ${content} } } }`;
  const head = `components: { schemas: ${JSON.stringify(SCHEMAS)} }\n`;
  await folder.write('openapi.yaml', openapi(paths, '3.1.0', head));
  const [operation] = await folder.load();
  const rule = operation?.rules?.body?.byMediaType.get('application/json');
  if (rule === undefined) throw new Error('the body is not validated');
  return (body) => {
    const errors = new FieldErrors();
    checkBody(rule, body, errors);
    return errors;
  };
}

describe('a body is validated in linear time', () => {
  it.each(Object.entries(CASES))('%s', async (_, { schema, body }) => {
    const judged = await judge(schema);
    expectLinearTime((size) => {
      const bytes = Buffer.from(body(size));
      return () => judged(bytes);
    }, 500);
  });

  it.each(Object.entries(MANY_ERRORS))('errors of %s', async (_, { schema, body }) => {
    const [plain, judged] = [await judge({}), await judge(schema)];
    // All errors are collected up to 16 KiB.
    for (const bytes of [1_000, 16_000, 256_000]) {
      const given = Buffer.from(body(bytes));
      expect(judged(given).isEmpty).toBe(false);
      expectWithin(
        30,
        () => judged(given),
        () => plain(given),
      );
    }
  });

  it('one whose schema tries a number of branches that grows with a power of it is refused', async () => {
    const judged = await judge(node);
    expect(judged(Buffer.from(chain(3))).list).toEqual([]);
    expect(judged(Buffer.from(chain(60))).list).toEqual([
      { field: 'body', message: 'is too deeply nested or too complex to be validated' },
    ]);
  });

  it('one that is nested more than 1,000 deep is refused, before a stack could overflow', async () => {
    const judged = await judge({ $ref: '#/components/schemas/Unique' });
    const nested = (depth: number) => Buffer.from(`${'['.repeat(depth)}${']'.repeat(depth)}`);
    expect(judged(nested(1_000)).list).toEqual([]);
    for (const depth of [1_001, 100_000])
      expect(judged(nested(depth)).list).toEqual([
        { field: 'body', message: 'is too deeply nested or too complex to be validated' },
      ]);
  });
});
