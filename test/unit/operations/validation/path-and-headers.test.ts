import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatProblem } from '../../../../src/config/problem.ts';
import { FieldErrors } from '../../../../src/domain/field-errors.ts';
import type { RequestRules } from '../../../../src/operations/listed-operation.ts';
import { checkHeaders, checkPath } from '../../../../src/operations/validation/path-and-headers.ts';
import { type ApiFolder, apiFolder, openapi } from '../../../fixtures/api-files.ts';

const JSON_POINT =
  '{ application/json: { schema: { type: object, required: [x], properties: { x: { type: integer } } } } }';
const POINT = '{ type: object, properties: { x: { type: integer } } }';
const PATHS = `
/points/{point}/{color}/{ids}:
  get:
    parameters:
      - { name: point, in: path, required: true, content: ${JSON_POINT} }
      - { name: color, in: path, required: true, schema: ${POINT} }
      - { name: ids, in: path, required: true, schema: { type: array, items: { type: integer } } }
      - { name: X-Point, in: header, content: ${JSON_POINT} }
      - { name: X-Color, in: header, required: true, schema: ${POINT} }
      - { name: X-Ids, in: header, schema: { oneOf: [{ enum: [all] }, { type: array, items: { type: integer } }] } }
      - { name: X-Pair, in: header, schema: { type: array, prefixItems: [{ type: integer }, { type: string }] } }
`;

let folder: ApiFolder;
let rules: RequestRules;
let warnings: readonly string[];
beforeAll(async () => {
  folder = await apiFolder({ 'openapi.yaml': openapi(PATHS) });
  const files = folder.files();
  const [operation] = await files.load();
  if (operation?.rules === undefined) throw new Error('no rules');
  rules = operation.rules;
  warnings = files.warnings.map((one) => formatProblem(one).replace(`${folder.path}/`, ''));
});
afterAll(() => folder.remove());

function refusedPath(path: string): readonly string[] {
  const errors = new FieldErrors();
  checkPath(rules.path, path, errors);
  return errors.list.map(({ field }) => field);
}

function refusedHeaders(sent: Readonly<Record<string, string>>): readonly string[] {
  const errors = new FieldErrors();
  const names = Object.keys(sent).map((lower) => ({ lower, folded: lower }));
  checkHeaders(rules.headers, { field: (name) => sent[name], fields: { names } }, errors);
  return errors.list.map(({ field }) => field);
}

test('JSON in a path or a header is parsed, and then validated', () => {
  expect(refusedPath('/points/%7B%22x%22:1%7D/any/1,2')).toEqual([]);
  expect(refusedPath('/points/%7B%22x%22:%22a%22%7D/any/1,2')).toEqual(['point[x]']);
  expect(refusedPath('/points/x/any/1,a')).toEqual(['point', 'ids[1]']);
  expect(refusedHeaders({ 'x-color': 'any', 'x-point': '{"x": 1}' })).toEqual([]);
  expect(refusedHeaders({ 'x-color': 'any', 'x-point': '{}' })).toEqual(['X-Point[x]']);
});

test('a header may have a single value where the schema allows it beside a list', () => {
  expect(refusedHeaders({ 'x-color': 'any', 'x-ids': 'all' })).toEqual([]);
  expect(refusedHeaders({ 'x-color': 'any', 'x-ids': '1, 2' })).toEqual([]);
  expect(refusedHeaders({ 'x-color': 'any', 'x-ids': 'some' })).toContain('X-Ids');
});

test('the first items of a list in a header are validated by their own schemas', () => {
  expect(refusedHeaders({ 'x-color': 'any', 'x-pair': '5, 6' })).toEqual([]);
  expect(refusedHeaders({ 'x-color': 'any', 'x-pair': 'a, 6' })).toEqual(['X-Pair[0]']);
});

test('other objects are not validated, and a warning names each of them', () => {
  expect(refusedPath('/points/%7B%22x%22:1%7D/x,1/1')).toEqual([]);
  expect(refusedHeaders({ 'x-color': 'x=1' })).toEqual([]);
  expect(refusedHeaders({})).toEqual(['X-Color']);
  const text =
    'is not validated: objects, and lists of lists, are read only from a deepObject, from JSON in content, and an object from an exploded query';
  const at = 'paths["/points/{point}/{color}/{ids}"].get.parameters';
  expect(warnings).toEqual([`openapi.yaml:9: ${at}.1: ${text}`, `openapi.yaml:12: ${at}.4: ${text}`]);
});
