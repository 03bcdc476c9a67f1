import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatProblem } from '../../../../src/config/problem.ts';
import { type ApiFolder, apiFolder, openapi } from '../../../fixtures/api-files.ts';

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder();
});
afterEach(() => folder.remove());

const problems = (settings?: string) => folder.problems(settings);

describe('a document of another kind', () => {
  test.each([
    ['swagger: "2.0"\npaths: {}\n', /^openapi\.yaml:1: swagger: this is a Swagger 2\.0 document: convert it/],
    [
      'openapi: 4.0.0\npaths: {}\n',
      /^openapi\.yaml:1: openapi: OpenAPI 4\.0\.0 is not supported: expected 3\.0/,
    ],
    [
      'openapi: 3.1\npaths: {}\n',
      /^openapi\.yaml:1: openapi: OpenAPI 3\.1 is not supported: the version has three numbers, such as "3\.1\.0"/,
    ],
    ['info: {}\n', /this is not an OpenAPI document/],
    ['openapi: 3.1.0\ninfo: {}\n', /the document lists no paths/],
  ])('%j is named as what it is', async (text, expected) => {
    await folder.write('openapi.yaml', text);
    expect(await problems()).toEqual([expect.stringMatching(expected)]);
  });

  test('a document of webhooks or components only has no operations', async () => {
    for (const section of ['webhooks', 'components']) {
      await folder.write(
        'openapi.yaml',
        `openapi: 3.1.0\ninfo: { title: t, version: '1' }\n${section}: {}\n`,
      );
      expect(await folder.load()).toEqual([]);
    }
  });

  test('OpenAPI 3.2 is read, and a query that is one value is not checked by name', async () => {
    const parameters = '[{ name: q, in: querystring, content: { application/json: {} } }]';
    const get = `{ operationId: find, x-weir: { cost: 3, validate: parameters }, parameters: ${parameters} }`;
    await folder.write('openapi.yaml', openapi(`/a: { get: ${get} }`, '3.2.0'));
    expect(await folder.load()).toMatchObject([{ id: 'find', cost: 3, rules: { query: { isOpen: true } } }]);
  });
});

test('what may be meant as an operation and is not read is a warning, with its line', async () => {
  const items = [
    '/a:',
    '  get:',
    '  post: 5',
    '  PUT: {}',
    '  delet: {}',
    '  x-own: 1',
    '  options: {}',
    '  summary: x',
    '  notes: x',
    '/b: 7',
    '/c:',
    "/d: { patch: { $ref: '#/x' } }",
  ];
  await folder.write('openapi.yaml', openapi(items.join('\n')));
  const files = folder.files();
  expect((await files.load()).map(({ id }) => id)).toEqual(['PATCH /d']);
  const mapping = 'is not read: an operation is a mapping, which may be empty: {}';
  const path = 'is not read: a path is a mapping of its operations';
  expect(files.warnings.map((one) => formatProblem(one).replace(`${folder.path}/`, ''))).toEqual([
    `openapi.yaml:5: paths["/a"].get: ${mapping}`,
    `openapi.yaml:6: paths["/a"].post: ${mapping}`,
    'openapi.yaml:7: paths["/a"].PUT: is not read: did you mean "put"?',
    'openapi.yaml:8: paths["/a"].delet: is not read: did you mean "delete"?',
    'openapi.yaml:12: paths["/a"].notes: is not read: a path has no such member',
    `openapi.yaml:13: paths["/b"]: ${path}`,
    `openapi.yaml:14: paths["/c"]: ${path}`,
    'openapi.yaml:15: paths["/d"].patch["$ref"]: is not read: OpenAPI has a $ref for a path, and none for an operation',
  ]);
});

test('a schema without a value is a problem that says what to write', async () => {
  const empty = 'its schema cannot be used: a schema in it has no value; write {} for any value';
  for (const schema of [
    '',
    '{ properties: { a: } }',
    '{ oneOf: [{ type: string }, { dependentSchemas: { a: } }] }',
  ]) {
    const get = `{ get: { parameters: [{ name: q, in: query, schema: ${schema} }] } }`;
    await folder.write('openapi.yaml', openapi(`/a: ${get}`));
    expect(await folder.problems()).toEqual([
      `openapi.yaml:4: paths["/a"].get.parameters.0.schema: ${empty}`,
    ]);
  }
});

test('what stands where a schema belongs and is none is a warning with its line, because any value is valid there', async () => {
  const schema =
    '{ type: object, properties: { a: string, b: [integer], c: true, d: { enum: [x], oneOf: [5, {}] } } }';
  await folder.write(
    'openapi.yaml',
    openapi(
      `/a:\n  get:\n    parameters:\n      - { name: q, in: query, style: deepObject, schema: ${schema} }`,
    ),
  );
  const files = folder.files();
  await files.load();
  const hint = 'is not read: any value is valid here, and a schema is a mapping such as { type: string }';
  const at = 'openapi.yaml:7: paths["/a"].get.parameters.0.schema.properties';
  expect(files.warnings.map((one) => formatProblem(one).replaceAll(`${folder.path}/`, ''))).toEqual([
    `${at}.a: ${hint}`,
    `${at}.b: ${hint}`,
    `${at}.d.oneOf.0: ${hint}`,
  ]);
});

test('a path with parameters as a router writes them is a warning, with the right form', async () => {
  await folder.write(
    'openapi.yaml',
    openapi('/users/:id/items/{item}: { get: {} }\n/things:batch: { get: {} }'),
  );
  const files = folder.files();
  await files.load();
  expect(files.warnings.map((one) => formatProblem(one).replaceAll(`${folder.path}/`, ''))).toEqual([
    'openapi.yaml:4: paths["/users/:id/items/{item}"]: has parameters in braces: did you mean "/users/{id}/items/{item}"?',
  ]);
});

test('an id that several operations have is a warning, and several base paths of one operation are not', async () => {
  const servers = 'servers: [{ url: /v1 }, { url: /v2 }]\n';
  const shared = ['/a: { get: { operationId: find } }', '/b: { get: { operationId: find } }'];
  const named = '/c: { get: { operationId: POST /v1/d } }';
  const paths = [...shared, '/e: { get: { operationId: other } }', named, '/d: { post: {} }'].join('\n');
  await folder.write('openapi.yaml', openapi(paths, '3.1.0', servers));
  const files = folder.files();
  await files.load();
  const why = 'limits that name the id count both, and decisions that name it have the cost of the last';
  expect(files.warnings.map((one) => formatProblem(one).replaceAll(`${folder.path}/`, ''))).toEqual([
    `openapi.yaml:6: paths["/b"].get: GET /v1/b has the id of GET /v1/a at openapi.yaml:5: ${why}`,
    `openapi.yaml:9: paths["/d"].post: POST /v1/d has the id of GET /v1/c at openapi.yaml:8: ${why}`,
  ]);
});

describe('the problems of a price list', () => {
  test('all are reported together, each with file and line', async () => {
    await folder.write(
      'openapi.yaml',
      openapi(
        [
          '/a/{id}:',
          '  get: { x-weir: { cost: 11 } }',
          '  put: { x-weir: { cost: 0.5, kind: reed, validate: query } }',
          '/a/{other}:',
          '  get: { x-weir: { csot: 2, personOnly: yes please } }',
          '/b: { get: { x-weir: expensive, parameters: [{ in: query }] } }',
          '/c: { get: { parameters: [{ name: x, in: query, schema: { type: strin } }] } }',
          '/d: { get: { parameters: { page: { in: query } } } }',
        ].join('\n'),
      ),
    );
    expect(await problems()).toEqual([
      'openapi.yaml:5: paths["/a/{id}"].get["x-weir"].cost: must be a whole number from 1 to 10, is 11: operations.maxCost sets the maximum'.replaceAll(
        '["x-weir"]',
        '.x-weir',
      ),
      'openapi.yaml:6: paths["/a/{id}"].put.x-weir.cost: must be a whole number from 1 to 10, is 0.5',
      'openapi.yaml:6: paths["/a/{id}"].put.x-weir.kind: must be read or write, is "reed"',
      'openapi.yaml:6: paths["/a/{id}"].put.x-weir.validate: must be false, parameters or body, is "query"',
      'openapi.yaml:8: paths["/a/{other}"].get.x-weir.csot: unknown key "csot": did you mean "cost"?',
      'openapi.yaml:8: paths["/a/{other}"].get.x-weir.personOnly: must be true or false, is "yes please"',
      'openapi.yaml:9: paths["/b"].get.x-weir: must be a mapping such as {cost: 5}',
      'openapi.yaml:9: paths["/b"].get.parameters.0: a parameter needs a name and an in',
      'openapi.yaml:10: paths["/c"].get.parameters.0.schema: its schema cannot be used: type must be JSONType or JSONType[]: strin',
      'openapi.yaml:11: paths["/d"].get.parameters: must be a list',
      'openapi.yaml:8: paths["/a/{other}"].get: GET /a/{other} matches the same requests as GET /a/{id} at openapi.yaml:5: keep one of them',
    ]);
  });

  test('a path in the list that has its parameters as a router writes them is refused, with the right form', async () => {
    const list = (path: string) => `list: [{ method: GET, path: "${path}" }]`;
    const of = async (path: string) => {
      await folder.write('weir.yaml', `operations:\n  ${list(path)}\n`);
      return await problems(`{ ${list(path)} }`);
    };
    expect(await of('/todos/:id/items/:item-id')).toEqual([
      'weir.yaml:2: operations.list.0.path: has parameters in braces: did you mean "/todos/{id}/items/{item-id}"?',
    ]);
    expect(await of('/things:batch')).toEqual([]);
  });

  test('the same path in a document and in the list is reported, and a higher maximum cost is a setting', async () => {
    await folder.write('openapi.yaml', openapi('/a: { get: { x-weir: { cost: 12 } } }'));
    const list = 'list: [{ method: GET, path: /a, cost: 13 }]';
    await folder.write('weir.yaml', `operations:\n  ${list}\n`);
    expect(await problems(`{ openapi: openapi.yaml, maxCost: 12, ${list} }`)).toEqual([
      'weir.yaml:2: operations.list.0.cost: must be a whole number from 1 to 12, is 13: operations.maxCost sets the maximum',
      'weir.yaml:2: operations.list.0: GET /a matches the same requests as GET /a at openapi.yaml:4: keep one of them',
    ]);
  });

  test('only a public operation may be free, and none is both public and Person-only', async () => {
    const both = '{ x-weir: { public: true, personOnly: true } }';
    await folder.write(
      'openapi.yaml',
      openapi(
        `/a: { get: { x-weir: { cost: 0 } }, put: { x-weir: { public: maybe } } }\n/b: { get: ${both} }`,
      ),
    );
    const list =
      'list: [{ method: GET, path: /c, cost: 0 }, { method: GET, path: /d, public: true, personOnly: true }]';
    await folder.write('weir.yaml', `operations:\n  ${list}\n`);
    const free = 'only a public operation may cost 0: set `public: true`, or a cost of at least 1';
    expect(await problems(`{ openapi: openapi.yaml, ${list} }`)).toEqual([
      `openapi.yaml:4: paths["/a"].get.x-weir.cost: ${free}`,
      'openapi.yaml:4: paths["/a"].put.x-weir.public: must be true or false, is "maybe"',
      'openapi.yaml:5: paths["/b"].get: an operation is either public or personOnly',
      `weir.yaml:2: operations.list.0.cost: ${free}`,
      'weir.yaml:2: operations.list.1: an operation is either public or personOnly',
    ]);
  });

  test('an invalid schema shared by several operations is reported once', async () => {
    const broken = 'components: { schemas: { Broken: { type: nothing } } }\n';
    const body =
      "requestBody: { content: { application/json: { schema: { $ref: '#/components/schemas/Broken' } } } }";
    const operation = `{ x-weir: { validate: body }, parameters: [{ $ref: '#/components/p' }], ${body} }`;
    await folder.write(
      'openapi.yaml',
      openapi(`/a: { put: ${operation}, post: ${operation} }`, '3.1.0', broken),
    );
    expect(
      (await problems()).filter((one) => one.includes('"#/components/p" cannot be resolved')),
    ).toHaveLength(2);
    expect((await problems()).filter((one) => one.includes('type must be JSONType'))).toHaveLength(1);
    await folder.write(
      'openapi.yaml',
      openapi(`/a: { put: ${operation.replace('validate: body', 'validate: false')} }`),
    );
    expect(await problems()).toEqual([]);
  });

  test('a pattern that cannot be evaluated in linear time is refused where it is written', async () => {
    const schemas = "components: { schemas: { Text: { type: string, pattern: '^(a+)\\1$' } } }\n";
    const schema = "schema: { type: object, properties: { text: { $ref: '#/components/schemas/Text' } } }";
    await folder.write(
      'openapi.yaml',
      openapi(
        `/a: { put: { x-weir: { validate: body }, requestBody: { content: { application/json: { ${schema} } } } } }`,
        '3.1.0',
        schemas,
      ),
    );
    expect(await problems()).toEqual([
      'openapi.yaml:3: components.schemas.Text.pattern: the pattern ^(a+)\\1$ cannot be used: the backreference \\1 cannot be evaluated in linear time: rewrite it, or set x-weir: { validate: false } for the operation',
    ]);
  });

  test('a text that is no YAML and a file that is missing are one sentence each', async () => {
    await folder.write('openapi.yaml', 'openapi: [');
    expect(await problems()).toEqual([expect.stringMatching(/^openapi.yaml:\d+: is not valid YAML: /)]);
    expect(await problems('{ openapi: no.yaml }')).toEqual([
      'no.yaml: does not exist: the setting operations.openapi or a $ref refers to it',
    ]);
  });
});
