import { afterEach, beforeEach, expect, test } from 'vitest';
import { FieldErrors } from '../../../../src/domain/field-errors.ts';
import { checkBody, planBody } from '../../../../src/operations/validation/body.ts';
import { type ApiFolder, apiFolder, openapi } from '../../../fixtures/api-files.ts';

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder();
});
afterEach(() => folder.remove());

/** What happens to a body of each type, where the document declares a schema for one type or range. */
async function plansFor(declared: string, sent: readonly string[]) {
  const content = `{ '${declared}': { schema: { type: object } } }`;
  const post = `{ x-weir: { validate: body }, requestBody: { content: ${content} } }`;
  await folder.write('openapi.yaml', openapi(`/things: { post: ${post} }`));
  const [operation] = await folder.load();
  const rules = operation?.rules?.body;
  if (rules === undefined) throw new Error('no rules for the body');
  return sent.map((type) => {
    const fields = new Map([['content-length', '5']]);
    if (type !== '') fields.set('content-type', type);
    return planBody(rules, { field: (name) => fields.get(name) }, new FieldErrors()).kind;
  });
}

const JSON_TYPES = ['application/json', 'application/problem+json', 'APPLICATION/JSON; charset=utf-8'];
const OTHERS = ['image/png', 'text/csv', 'application/xml', 'application/x+jsonx'];

test('a range of types that are never JSON is streamed', async () => {
  expect(await plansFor('image/*', ['image/png', 'image/svg+xml'])).toEqual(['stream', 'stream']);
  expect(await plansFor('text/*', ['text/csv'])).toEqual(['stream']);
});

test('under a range of all types, JSON is read, and other types are streamed', async () => {
  expect(await plansFor('*/*', JSON_TYPES)).toEqual(['read', 'read', 'read']);
  expect(await plansFor('*/*', OTHERS)).toEqual(['stream', 'stream', 'stream', 'stream']);
  expect(await plansFor('application/*', JSON_TYPES)).toEqual(['read', 'read', 'read']);
  expect(await plansFor('application/*', OTHERS)).toEqual(['refused', 'refused', 'stream', 'stream']);
});

test('a body without a type is read where the range may be JSON', async () => {
  expect(await plansFor('*/*', [''])).toEqual(['read']);
});

test('a range of types with a suffix is read where the suffix is JSON', async () => {
  const sent = ['application/merge-patch+json', 'application/a+b+json; charset=utf-8', 'application/json'];
  expect(await plansFor('application/*+json', sent)).toEqual(['read', 'read', 'refused']);
  expect(await plansFor('application/*+xml', ['application/atom+xml'])).toEqual(['stream']);
});

/** Whether each body is valid, by its type. */
async function verdictsFor(
  content: string,
  sent: readonly (readonly [type: string, body: string])[],
  head = '',
) {
  const post = `{ x-weir: { validate: body }, requestBody: { content: ${content} } }`;
  await folder.write('openapi.yaml', openapi(`/things: { post: ${post} }`, '3.2.0', head));
  const rules = (await folder.load())[0]?.rules?.body;
  if (rules === undefined) throw new Error('no rules for the body');
  return sent.map(([type, body]) => {
    const fields = new Map([
      ['content-length', '5'],
      ['content-type', type],
    ]);
    const errors = new FieldErrors();
    const plan = planBody(rules, { field: (name) => fields.get(name) }, errors);
    if (plan.kind === 'read') checkBody(plan.rule, Buffer.from(body), errors);
    return errors.isEmpty;
  });
}

test('of types that differ in parameters, the exact one applies, and another one accepts what any accepts', async () => {
  const [a, b] = ['a', 'b'].map((name) => `{ schema: { required: [${name}] } }`);
  const content = `{ "application/json; v=1.0": ${a}, "application/json; v=2.0": ${b}, text/json: ${a}, "text/json;v=2": ${b} }`;
  const bodies = ['{"a":1}', '{"b":1}', '{}'];
  const judged = (type: string) =>
    verdictsFor(
      content,
      bodies.map((body) => [type, body]),
    );
  expect(await judged('application/json; charset=utf-8; V="1.0"')).toEqual([true, false, false]);
  expect(await judged('application/json;v=2.0')).toEqual([false, true, false]);
  for (const type of ['application/json', 'application/json; v=3.0'])
    expect(await judged(type)).toEqual([true, true, false]);
  expect(await judged('text/json')).toEqual([true, false, false]);
  expect(await judged('text/json; v=3')).toEqual([true, false, false]);
});

test('a body whose schema is false is refused, also behind a $ref', async () => {
  const sent = [['application/json', '{}']] as const;
  expect(await verdictsFor('{ application/json: { schema: false } }', sent)).toEqual([false]);
  const behind = "{ application/json: { schema: { $ref: '#/components/schemas/None' } } }";
  expect(await verdictsFor(behind, sent, 'components: { schemas: { None: false } }\n')).toEqual([false]);
});

test('a property called constructor or toString counts only if the body itself has it', async () => {
  const names = ['constructor', 'toString', 'hasOwnProperty'];
  const properties = names.map((name) => `${name}: { type: string }`).join();
  const schema = `{ properties: { ${properties} }, dependentRequired: { valueOf: [x] } }`;
  const judged = (one: string, sent: readonly unknown[]) =>
    verdictsFor(
      `{ application/json: { schema: ${one} } }`,
      sent.map((value) => ['application/json', JSON.stringify(value)]),
    );
  expect(await judged(schema, [{}, { constructor: 'x' }, { toString: 1 }, { valueOf: 1 }])).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(await judged('{ required: [constructor, x] }', [{ x: 1 }, { x: 1, constructor: 1 }])).toEqual([
    false,
    true,
  ]);
  const within = '{ items: { required: [toString] } }';
  expect(await judged(within, [[{}], [{ toString: 1 }]])).toEqual([false, true]);
});

test('of base64, every line is checked', async () => {
  const content = '{ application/json: { schema: { type: string, format: byte } } }';
  const texts = [
    '',
    'YQ==',
    'YWJj\r\nYQ==',
    'YQ',
    'YQ=',
    'Y===',
    'YQ==YQ==',
    'no!\n',
    'no!\nYQ==',
    'YQ==\nno!',
  ];
  const sent = texts.map((text) => ['application/json', JSON.stringify(text)] as const);
  const isValid = await verdictsFor(content, sent);
  expect(texts.filter((_, index) => isValid[index])).toEqual(['', 'YQ==', 'YWJj\r\nYQ==']);
});

test('a $ref of a media type is followed', async () => {
  const head = 'components: { mediaTypes: { M: { schema: { required: [a] } } } }\n';
  const content = "{ application/json: { $ref: '#/components/mediaTypes/M' } }";
  const sent = [
    ['application/json', '{"a":1}'],
    ['application/json', '{}'],
  ] as const;
  expect(await verdictsFor(content, sent, head)).toEqual([true, false]);
  await expect(verdictsFor(content, sent)).rejects.toThrow('cannot be resolved');
});

test('a declared type of JSON is read, with parameters and in any letter case', async () => {
  expect(await plansFor('Application/Vnd.Things+JSON; version=1', ['application/vnd.things+json'])).toEqual([
    'read',
  ]);
  expect(await plansFor('application/json', ['application/json', 'text/plain'])).toEqual(['read', 'refused']);
});
