import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../../../src/config/problem.ts';
import { type ApiFolder, apiFolder } from '../../../fixtures/api-files.ts';

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder();
});
afterEach(() => folder.remove());

const HEAD = 'openapi: 3.1.0\ninfo: { title: x, version: "1" }\npaths: { /x: { get: { responses: {} } } }\n';

function documentOf(members: object): string {
  const paths = { '/x': { get: { responses: {} } } };
  return JSON.stringify({ openapi: '3.1.0', info: { title: 'x', version: '1' }, paths, ...members });
}

/** A document with a query parameter of this schema. */
function withSchema(schema: unknown, schemas: object = {}): string {
  const parameters = [{ name: 'q', in: 'query', style: 'deepObject', schema }];
  const paths = { '/x': { get: { parameters, responses: {} } } };
  return documentOf({ paths, components: { schemas } });
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const times = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, i) => make(i));

/** Lists of nine aliases of the list before. */
function laughs(levels: number): string {
  const lines = times(
    levels,
    (n) => `x${n}: &x${n} [${times(9, () => (n === 0 ? 'x' : `*x${n - 1}`)).join()}]\n`,
  );
  return HEAD + lines.join('');
}

const aliasChain = `${HEAD}x0: &x0 {}\n${times(5_000, (n) => `x${n + 1}: &x${n + 1} { a: *x${n} }\n`).join('')}`;

async function problemsOf(text: string): Promise<readonly string[]> {
  await folder.write('openapi.yaml', text);
  try {
    await folder.load();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ message }) => message);
  }
}

describe('a document that expands to much more than its text is refused', () => {
  it.each<[string, string, RegExp]>([
    ['aliases in nine levels', laughs(9), /aliases expand to more than 1000000 values/],
    ['aliases in a hundred levels', laughs(100), /aliases expand to more than/],
    ['an alias of itself', `${HEAD}x: &x { a: [*x] }\n`, /an alias contains itself/],
    ['a long chain of aliases', aliasChain, /aliases make it deeper than 200 levels/],
    ['deeply nested JSON', `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`, /is not valid YAML/],
    [
      'one path item for many paths',
      documentOf({
        paths: Object.fromEntries(times(3_000, (n) => [`/p${n}`, { $ref: '#/components/pathItems/X' }])),
        components: {
          pathItems: { X: { parameters: times(500, (n) => ({ name: `q${n}`, in: 'cookie' })), get: {} } },
        },
      }),
      /expands to more than 300000 operations and parameters/,
    ],
  ])('%s', async (_, text, message) => {
    expect(await problemsOf(text)).toEqual([expect.stringMatching(message)]);
  });

  it('aliases that expand to less are read', async () => {
    expect(await problemsOf(laughs(5))).toEqual([]);
  });
});

describe('a document whose references multiply is read in bounded time', () => {
  const itself = {
    type: 'object',
    properties: Object.fromEntries(times(20, (n) => [`p${n}`, ref('A')])),
    items: { allOf: times(20, () => ref('A')) },
  };
  const branches = Object.fromEntries(
    times(12, (n) => [`A${n}`, { allOf: times(12, () => ref(`A${n + 1}`)) }]),
  );
  const members = times(60, (n) => `p${n}`);
  const mutual = {
    required: members,
    properties: Object.fromEntries(members.map((name, n) => [name, ref(`A${n}`)])),
    allOf: times(100, (n) => ref(`A${n}`)),
  };
  const url = `/${times(40, (n) => `{v${n}}`).join('')}`;
  const variables = Object.fromEntries(
    times(40, (n) => [`v${n}`, { default: 'a', enum: times(30, String) }]),
  );
  it.each([
    ['a schema with many references to itself', withSchema(ref('A'), { A: itself })],
    [
      'schemas of the same value in many ways',
      withSchema(ref('A0'), { ...branches, A12: { items: ref('A0') } }),
    ],
    ['references in twelve levels', withSchema(ref('A0'), { ...branches, A12: { type: 'string' } })],
    [
      'a hundred schemas that all refer to each other',
      documentOf({
        components: { schemas: Object.fromEntries(times(100, (n) => [`A${n}`, { ...mutual }])) },
      }),
    ],
    ['servers with many variables', documentOf({ servers: [{ url, variables }] })],
  ])('%s', async (_, text) => {
    expect(await problemsOf(text)).toEqual([]);
  });
});

describe('a schema that refers to itself for the same value, with which no check would end, is refused', () => {
  const many = { properties: { p: ref('A') }, allOf: times(20, () => ref('A')) };
  it.each<[string, Record<string, object>, RegExp]>([
    ['by its $ref', { A: ref('B'), B: ref('A') }, /\.schema$/],
    ['in each branch', { A: many }, /schemas\.A$/],
    [
      'as the parent of its branch',
      { A: { oneOf: [ref('B')] }, B: { allOf: [{ required: ['x'] }, ref('A')] } },
      /\.A$/,
    ],
    [
      'in what a condition asks',
      { A: { properties: { p: { else: ref('B') } } }, B: { not: ref('C') }, C: { if: ref('B') } },
      /\.p\.else$/,
    ],
    [
      'of all hundred',
      Object.fromEntries(
        times(100, (n) => [
          n === 0 ? 'A' : `A${n}`,
          { oneOf: times(100, (m) => ref(m === 0 ? 'A' : `A${m}`)) },
        ]),
      ),
      /\.A$/,
    ],
  ])('%s', async (_, schemas, place) => {
    await folder.write('openapi.yaml', withSchema(ref('A'), schemas));
    const loading = folder.load();
    await expect(loading).rejects.toBeInstanceOf(ConfigError);
    const { problems } = (await loading.catch((error: ConfigError) => error)) as ConfigError;
    expect(problems).toEqual([
      expect.objectContaining({
        path: expect.stringMatching(place),
        message: expect.stringMatching(/refers to itself for the same value|its \$refs are circular/),
      }),
    ]);
  });

  it('and one that refers to itself in parts of a value, or for some values only, is not', async () => {
    const schemas = {
      A: {
        anyOf: [ref('B'), { type: 'object', properties: { not: ref('A') }, additionalProperties: ref('A') }],
      },
      B: { allOf: [ref('C'), ref('D')], items: ref('A') },
      C: { enum: [{ $ref: '#/components/schemas/A' }] },
      D: { anyOf: [{ type: 'string' }, ref('D')], else: ref('D'), dependentSchemas: { x: ref('D') } },
    };
    expect(await problemsOf(withSchema(ref('A'), schemas))).toEqual([]);
  });
});

const REFERENCES = [
  '\\\\host\\share',
  '//host/share',
  'file://host/x',
  'file:///%00',
  'file:///a%2Fb',
  'file:///%zz',
  'a%zz',
  'a\0b.yaml',
  'data:,x',
  'urn:x',
  'ftp://host/x',
  'http://[',
  'http://host/x',
  '#/%zz',
  '#a\0b',
  '#/components/schemas/none',
  '.',
  '/dev/zero',
  '/proc/self/mem',
  'C:\\x',
  '///',
  '\u009b\u202e\n',
  'x'.repeat(5_000),
  5,
  {},
] as const;

describe('a $ref that leads nowhere is a problem with its place', () => {
  it.each(REFERENCES)('of a schema: %j', async ($ref) => {
    expect(await problemsOf(withSchema({ $ref }))).toHaveLength(1);
  });

  it.each(REFERENCES.filter((one) => typeof one === 'string'))('of a path: %j', async ($ref) => {
    expect(await problemsOf(documentOf({ paths: { '/x': { $ref } } }))).toHaveLength(1);
  });
});
