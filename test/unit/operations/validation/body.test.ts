import { afterEach, beforeEach, expect, test } from 'vitest';
import { FieldErrors } from '../../../../src/domain/field-errors.ts';
import { planBody } from '../../../../src/operations/validation/body.ts';
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

test('a declared type of JSON is read, with parameters and in any letter case', async () => {
  expect(await plansFor('Application/Vnd.Things+JSON; version=1', ['application/vnd.things+json'])).toEqual([
    'read',
  ]);
  expect(await plansFor('application/json', ['application/json', 'text/plain'])).toEqual(['read', 'refused']);
});
