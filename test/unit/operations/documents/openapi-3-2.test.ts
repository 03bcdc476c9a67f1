import { afterEach, beforeEach, expect, it } from 'vitest';
import { type ApiFolder, apiFolder, openapi } from '../../../fixtures/api-files.ts';

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder();
});
afterEach(() => folder.remove());

const THING =
  '{ components: { parameters: { limit: { name: limit, in: query, schema: { type: integer } } } } }';

async function warnings(): Promise<readonly string[]> {
  const files = folder.files();
  await files.load();
  return files.warnings.map(({ path, message, hint }) => `${path}: ${message}: ${hint ?? ''}`);
}

it('query and additionalOperations have prices, and a kind of bucket', async () => {
  const items =
    '/a: { query: { x-weir: { cost: 3 } }, additionalOperations: { COPY: { x-weir: { cost: 5 } } } }';
  await folder.write('openapi.yaml', openapi(items, '3.2.0'));
  const operations = await folder.load();
  expect(operations.map(({ id, cost, kind }) => [id, cost, kind])).toEqual([
    ['QUERY /a', 3, 'read'],
    ['COPY /a', 5, 'write'],
  ]);
});

it('earlier documents have further methods in an extension', async () => {
  const items = '/a: { x-oai-additionalOperations: { QUERY: { x-weir: { cost: 3 } } } }';
  await folder.write('openapi.yaml', openapi(items));
  expect(await folder.load()).toMatchObject([{ id: 'QUERY /a', cost: 3 }]);
});

it('a method that the gateway does not serve is a warning', async () => {
  await folder.write(
    'openapi.yaml',
    openapi('/a: { additionalOperations: { copy: {}, CONNECT: {} } }', '3.2.0'),
  );
  const hint = 'is not read: the gateway does not serve this method';
  expect(await warnings()).toEqual([
    `paths["/a"].additionalOperations.copy: ${hint}`,
    `paths["/a"].additionalOperations.CONNECT: ${hint}`,
  ]);
});

it.each([
  ['an anchor-free pointer', 'https://example.com/api/main', '#/components/parameters/limit'],
  [
    'its own address',
    'https://example.com/api/main',
    'https://example.com/api/main#/components/parameters/limit',
  ],
  ['a relative reference', 'https://example.com/api/main', 'parts.yaml#/components/parameters/limit'],
  [
    'an address beside it',
    'https://example.com/api/main',
    'https://example.com/api/parts.yaml#/components/parameters/limit',
  ],
  ['a relative $self', '/api/main', 'parts.yaml#/components/parameters/limit'],
])('with $self, %s is resolved', async (_name, self, ref) => {
  const head = `$self: ${self}\ncomponents: { parameters: { limit: { name: limit, in: query, schema: { type: integer } } } }\n`;
  await folder.write('parts.yaml', THING);
  await folder.write(
    'openapi.yaml',
    openapi(`/a: { get: { parameters: [{ $ref: '${ref}' }] } }`, '3.2.0', head),
  );
  const [operation] = await folder.load();
  expect([...(operation?.rules?.query.byName.keys() ?? [])]).toEqual(['limit']);
});

it('with $self, a reference to another host is a problem', async () => {
  const paths = `/a: { get: { parameters: [{ $ref: 'https://example.org/b#/x' }] } }`;
  await folder.write('openapi.yaml', openapi(paths, '3.2.0', '$self: https://example.com/a\n'));
  await expect(folder.load()).rejects.toThrow(/is not a local file/);
});

it('a media type of a parameter may be a $ref', async () => {
  const head = 'components: { mediaTypes: { M: { schema: { type: object, required: [a] } } } }\n';
  const content = "{ application/json: { $ref: '#/components/mediaTypes/M' } }";
  const parameters = `[{ name: q, in: query, content: ${content} }]`;
  await folder.write('openapi.yaml', openapi(`/a: { get: { parameters: ${parameters} } }`, '3.2.0', head));
  const [operation] = await folder.load();
  const rule = operation?.rules?.query.byName.get('q');
  expect([rule?.check({ a: 1 }), rule?.check({})]).toMatchObject([undefined, [{ path: ['a'] }]]);
});

it('a $ref of a media type that leads nowhere is a problem, and a warning in older documents', async () => {
  const content = (name: string) => `content: { application/json: { $ref: '${name}' } }`;
  const parameters = `[{ name: q, in: query, ${content('https://example.com/x')} }]`;
  const get = `{ parameters: ${parameters} }`;
  const post = `{ x-weir: { validate: body }, requestBody: { ${content('#/none')} } }`;
  const found = async (version: string) => {
    await folder.write('openapi.yaml', openapi(`/a: { get: ${get}, post: ${post} }`, version));
    return folder.problems();
  };
  expect(await found('3.2.0')).toEqual([
    expect.stringContaining('is not a local file'),
    expect.stringContaining('"#/none" cannot be resolved'),
  ]);
  for (const version of ['3.0.3', '3.1.0']) expect(await found(version)).toEqual([]);
  const files = folder.files();
  const [read, written] = await files.load();
  expect(read?.rules?.query.byName.get('q')?.check('x')).toBeUndefined();
  expect(written?.rules?.body?.byMediaType.get('application/json')?.check({})).toBeUndefined();
  expect(files.warnings.map(({ message }) => message)).toEqual([
    'is not a local file',
    '"#/none" cannot be resolved',
  ]);
});

it('itemSchema is said to be not validated', async () => {
  const content = '{ application/jsonl: { itemSchema: { type: object } } }';
  const post = `{ x-weir: { validate: body }, requestBody: { content: ${content} } }`;
  await folder.write('openapi.yaml', openapi(`/a: { post: ${post} }`, '3.2.0'));
  expect(await warnings()).toEqual([
    expect.stringMatching(/itemSchema: is not validated: bodies of this media type are streamed$/),
  ]);
});
