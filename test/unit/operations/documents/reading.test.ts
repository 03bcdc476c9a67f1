import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatPlace } from '../../../../src/config/problem.ts';
import { type ApiFolder, apiFolder, openapi } from '../../../fixtures/api-files.ts';

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder();
});
afterEach(() => folder.remove());

async function prices(settings?: string): Promise<Record<string, number>> {
  const operations = await folder.load(settings);
  return Object.fromEntries(operations.map(({ method, path, cost }) => [`${method} ${path}`, cost]));
}

/** Whether each value is a valid body, by each schema. */
async function judge(
  bodies: readonly string[],
  values: readonly unknown[],
  schemas: string,
  version: string,
) {
  const paths = bodies.map(
    (schema, index) =>
      `/${index}: { post: { x-weir: { validate: body }, requestBody: { content: { application/json: { schema: ${schema} } } } } }`,
  );
  await folder.write(
    'openapi.yaml',
    openapi(paths.join('\n'), version, `components: { schemas: { ${schemas} } }\n`),
  );
  return (await folder.load()).map(({ rules }) => {
    const rule = rules?.body?.byMediaType.get('application/json');
    return values.map((value) => rule !== undefined && rule.check(value) === undefined);
  });
}

describe('a price list read from OpenAPI', () => {
  test.each(['3.0.0', '3.0.4', '3.1.0', '3.1.1'])('takes OpenAPI %s', async (version) => {
    await folder.write('openapi.yaml', openapi('/a: { get: { x-weir: { cost: 3 } } }', version));
    expect(await prices()).toEqual({ 'GET /a': 3 });
  });

  test.each(['2.0', '4.0.0', '3.9'])('refuses version %s in one sentence', async (version) => {
    await folder.write('openapi.yaml', openapi('/a: { get: {} }', version));
    await expect(prices()).rejects.toThrow(/openapi.yaml:1: openapi: OpenAPI [\d.]+ is not supported/);
  });

  test.each(['3.0.0', '3.1.0'])(
    'OpenAPI %s compiles a schema once that many parameters name',
    async (version) => {
      const names = Array.from({ length: 20 }, (_, index) => `p${index}`);
      const parameters = names.map(
        (name) => `{ name: ${name}, in: query, schema: { $ref: "#/components/schemas/Id" } }`,
      );
      const components =
        'components: { schemas: { Id: { $ref: "#/components/schemas/Text" }, Text: { type: string, maxLength: 3 } } }\n';
      await folder.write(
        'openapi.yaml',
        openapi(`/a: { get: { parameters: [${parameters.join()}] } }`, version, components),
      );
      const [operation] = await folder.load();
      const checks = names.map((name) => operation?.rules?.query.byName.get(name)?.check);
      expect(new Set(checks).size).toBe(1);
      expect([checks[0]?.('abc'), checks[0]?.('abcd')]).toMatchObject([undefined, [{ path: [] }]]);
    },
  );

  test('takes JSON and several documents', async () => {
    await folder.write('a.json', JSON.stringify({ openapi: '3.1.0', paths: { '/a': { get: {} } } }));
    await folder.write('b.yaml', openapi('/b: { post: { x-weir: { cost: 2 } } }'));
    expect(await prices('{ openapi: [a.json, b.yaml] }')).toEqual({ 'GET /a': 1, 'POST /b': 2 });
  });

  test('an operation gets the innermost value of operation, path and document', async () => {
    await folder.write(
      'openapi.yaml',
      openapi(
        [
          '/a:',
          '  x-weir: { cost: 3, personOnly: true }',
          '  get: { x-weir: { cost: 4 } }',
          '  post: {}',
          '/b: { get: { x-weir: { validate: body } } }',
          '/c: { post: { x-weir: { kind: read, personOnly: false } } }',
        ].join('\n'),
        '3.1.0',
        'x-weir: { cost: 2, validate: false, personOnly: true }\n',
      ),
    );
    const operations = await folder.load();
    expect(
      operations.map(({ id, cost, access, kind, validation }) => [id, cost, access, kind, validation]),
    ).toEqual([
      ['GET /a', 4, 'person', 'read', 'none'],
      ['POST /a', 3, 'person', 'write', 'none'],
      ['GET /b', 2, 'person', 'read', 'body'],
      ['POST /c', 2, 'caller', 'read', 'none'],
    ]);
    expect(operations.map(({ costWrittenAt }) => costWrittenAt?.line())).toEqual([7, 6, 3, 3]);
    expect(formatPlace(operations[0]?.writtenAt ?? { file: '', path: '', line: () => 0 })).toBe(
      `${folder.path}/openapi.yaml:7`,
    );
  });

  test('an empty list of security requirements makes an operation public, unless x-weir says otherwise', async () => {
    const accessOf = async (head: string) => {
      await folder.write(
        'openapi.yaml',
        openapi(
          [
            '/a: { get: {}, post: { security: [] }, put: { security: [{ bearer: [] }] }, delete: { security: [{}] } }',
            '/b: { get: { x-weir: { public: true }, security: [{ bearer: [] }] }, post: { security: [], x-weir: { public: false } } }',
            '/c: { x-weir: { public: true }, get: {}, put: { security: [{ bearer: [] }] } }',
            '/d: { get: { security: [], x-weir: { personOnly: true } }, post: { security: [], x-weir: { cost: 0 } } }',
          ].join('\n'),
          '3.1.0',
          head,
        ),
      );
      const operations = await folder.load();
      return operations.filter(({ access }) => access === 'public').map(({ id }) => id);
    };
    const always = ['POST /a', 'GET /b', 'GET /c', 'POST /d'];
    expect(await accessOf('')).toEqual(always);
    expect(await accessOf('security: [{ bearer: [] }]\n')).toEqual(always);
    expect(await accessOf('security: []\n')).toEqual(['GET /a', ...always]);
    // Everything but what asks for it by name stays closed.
    const closed = accessOf('security: []\nx-weir: { public: false }\n');
    await expect(closed).rejects.toThrow('only a public operation may cost 0');
  });

  test('paths, parameters and schemas can be in separate files, and circular', async () => {
    await folder.write('openapi.yaml', openapi(`/a/{id}: { $ref: 'paths.yaml#/thing' }`));
    await folder.write(
      'paths.yaml',
      [
        'thing:',
        "  parameters: [{ $ref: 'shared.yaml#/id' }]",
        '  get: { x-weir: { cost: 7 } }',
        '  post:',
        '    x-weir: { validate: body }',
        "    requestBody: { content: { application/json: { schema: { $ref: './shared.yaml#/Tree' } } } }",
      ].join('\n'),
    );
    await folder.write(
      'shared.yaml',
      [
        "id: { name: id, in: path, required: true, schema: { $ref: '#/Id' } }",
        'Id: { type: string, maxLength: 3 }',
        "Tree: { type: object, properties: { children: { type: array, items: { $ref: '#/Tree' } } } }",
      ].join('\n'),
    );
    const [read, write] = await folder.load();
    expect(read?.cost).toBe(7);
    expect(read?.costWrittenAt && formatPlace(read.costWrittenAt)).toBe(`${folder.path}/paths.yaml:3`);
    expect(read?.rules?.path[0]?.check('long')).toBeDefined();
    const body = write?.rules?.body?.byMediaType.get('application/json');
    expect(body?.check({ children: [{ children: [] }] })).toBeUndefined();
    expect(body?.check({ children: [{ children: 1 }] })).toMatchObject([
      { path: ['children', '0', 'children'] },
    ]);
  });

  test('members of a path beside its $ref count, and take precedence', async () => {
    const own = [
      '/a/{id}:',
      "  $ref: '#/components/pathItems/thing'",
      '  servers: [{ url: /own }]',
      '  parameters: [{ name: z, in: query, schema: { type: integer } }]',
      '  post: { x-weir: { cost: 4 } }',
      '  put: {}',
    ];
    const parameters =
      '[{ name: z, in: query, schema: { type: boolean } }, { name: y, in: query, schema: { type: boolean } }]';
    const thing = `{ x-weir: { cost: 3, validate: parameters }, servers: [{ url: /other }], parameters: ${parameters}, get: {}, put: { x-weir: { cost: 9 } } }`;
    const head = `components: { pathItems: { thing: ${thing} } }\n`;
    await folder.write('openapi.yaml', openapi(own.join('\n'), '3.1.0', head));
    const files = folder.files();
    const operations = await files.load();
    expect(operations.map(({ id, cost }) => [id, cost])).toEqual([
      ['POST /own/a/{id}', 4],
      ['PUT /own/a/{id}', 3],
      ['GET /own/a/{id}', 3],
    ]);
    const query = operations.find(({ method }) => method === 'GET')?.rules?.query;
    expect(query?.byName.get('z')?.check(1)).toBeUndefined();
    expect(query?.byName.get('y')?.check(1)).toBeDefined();
    expect(query?.isOpen).toBe(false);
    expect(files.warnings.map(({ path, message }) => `${path} ${message}`)).toContain(
      'paths["/a/{id}"].put is read instead of the operation that the $ref of its path leads to',
    );
  });

  test('an operation merged by YAML has the same cost as a literal one', async () => {
    await folder.write(
      'openapi.yaml',
      openapi('/a: { get: { <<: *shared } }', '3.1.0', 'x-shared: &shared { x-weir: { cost: 4 } }\n'),
    );
    expect(await prices()).toEqual({ 'GET /a': 4 });
  });

  test.each(['3.0.3', '3.1.0'])('a request need not hold what is read-only, in %s', async (version) => {
    const schema =
      '{ type: object, required: [id, name], properties: { id: { type: string, readOnly: true }, name: { type: string, nullable: true } } }';
    const content = `content: { application/json: { schema: ${schema} } }`;
    await folder.write(
      'openapi.yaml',
      openapi(`/a: { post: { x-weir: { validate: body }, requestBody: { ${content} } } }`, version),
    );
    const [operation] = await folder.load();
    const body = operation?.rules?.body?.byMediaType.get('application/json');
    expect(body?.check({ name: 'x' })).toBeUndefined();
    expect(body?.check({ id: 'x' })).toMatchObject([{ path: ['name'] }]);
  });

  test.each(['3.0.3', '3.1.0'])(
    'what is read-only behind a $ref or in allOf is not required, in %s',
    async (version) => {
      const schemas = [
        'Id: { type: string, readOnly: true }',
        "Named: { type: object, required: [name], properties: { id: { $ref: '#/components/schemas/Id' }, name: { type: string } } }",
      ].join(', ');
      const named = "{ $ref: '#/components/schemas/Named' }";
      const bodies = [
        "{ required: [id, name], properties: { id: { $ref: '#/components/schemas/Id' } } }",
        "{ required: [id, name], properties: { id: { allOf: [{ $ref: '#/components/schemas/Id' }] } } }",
        `{ required: [id, name], allOf: [${named}] }`,
        `{ allOf: [${named}, { type: object, required: [id, name] }] }`,
      ];
      const judged = await judge(bodies, [{ name: 'x' }, { id: 'x' }], schemas, version);
      expect(judged).toEqual(bodies.map(() => [true, false]));
    },
  );

  test('what is read-only beside a $ref to an $id is not required', async () => {
    const schemas = [
      "Id: { $id: 'https://example.com/schemas/id', type: string }",
      "Other: { $id: 'https://example.com/schemas/other', type: object }",
      "Read: { $ref: 'https://example.com/schemas/id', readOnly: true }",
    ].join(', ');
    const bodies = [
      "{ required: [id], properties: { id: { $ref: 'https://example.com/schemas/id', readOnly: true } } }",
      "{ required: [id], properties: { id: { $ref: '#/components/schemas/Read' } } }",
      "{ required: [id], properties: { id: { readOnly: true } }, $ref: 'https://example.com/schemas/other' }",
    ];
    const judged = await judge(bodies, [{}, 5], schemas, '3.1.0');
    expect(judged).toEqual(bodies.map((_, index) => [true, index < 2]));
  });

  test('the dialect of 3.0 is read as its own', async () => {
    const schema =
      '{ type: integer, minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false, nullable: true }';
    await folder.write(
      'openapi.yaml',
      openapi(`/a: { get: { parameters: [{ name: n, in: query, schema: ${schema} }] } }`, '3.0.3'),
    );
    const [operation] = await folder.load();
    const rule = operation?.rules?.query.byName.get('n');
    expect([1, 2, 5, 6, null].map((value) => rule?.check(value) === undefined)).toEqual([
      false,
      true,
      true,
      false,
      true,
    ]);
  });

  test('unresolved references are reported only where they are used', async () => {
    await folder.write(
      'openapi.yaml',
      openapi(
        [
          '/a:',
          '  get:',
          "    responses: { '200': { description: ok, content: { a/b: { example: { $ref: gone.yaml } } } } }",
          "    parameters: [{ $ref: '#/components/parameters/gone' }, { $ref: https://example.com/p.yaml }]",
          "/b: { $ref: './gone.yaml#/b' }",
        ].join('\n'),
      ),
    );
    await expect(folder.load()).rejects.toMatchObject({
      problems: [
        {
          line: 7,
          path: 'paths["/a"].get.parameters.0["$ref"]',
          message: '"#/components/parameters/gone" cannot be resolved',
        },
        { source: 'https://example.com/p.yaml', message: 'is not a local file' },
        { source: `${folder.path}/gone.yaml`, message: 'does not exist' },
      ],
    });
  });

  test('servers give distinct base paths; the innermost list wins, and a setting replaces all', async () => {
    await folder.write(
      'openapi.yaml',
      openapi(
        [
          '/a: { get: {} }',
          '/b: { servers: [{ url: /own }], get: {} }',
          '/c: { get: { servers: [{ url: / }] } }',
        ].join('\n'),
        '3.1.0',
        'servers: [{ url: https://a.test/v3/ }, { url: https://b.test/v3 }, { url: "{proto}://c.test/{v}", variables: { proto: { default: https }, v: { default: v4, enum: [v4, v5] } } }]\n',
      ),
    );
    expect(Object.keys(await prices())).toEqual([
      'GET /v3/a',
      'GET /v4/a',
      'GET /v5/a',
      'GET /own/b',
      'GET /c',
    ]);
    expect(Object.keys(await prices('{ basePath: /x }'))).toEqual(['GET /x/a', 'GET /x/b', 'GET /x/c']);
  });

  test('a list in the settings needs no document', async () => {
    expect(
      await prices('{ list: [{ method: POST, path: "/a/{id}", cost: 4 }, { method: GET, path: /b }] }'),
    ).toEqual({
      'POST /a/{id}': 4,
      'GET /b': 1,
    });
  });
});
