import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FieldErrors } from '../../../../src/domain/field-errors.ts';
import type { RequestRules } from '../../../../src/operations/listed-operation.ts';
import { checkQuery } from '../../../../src/operations/validation/query.ts';
import { type ApiFolder, apiFolder, openapi } from '../../../fixtures/api-files.ts';

const PATHS = `
/list:
  get:
    parameters:
      - { name: 'page[size]', in: query, schema: { type: integer } }
      - { name: 'filter[status][eq]', in: query, schema: { type: string } }
      - { name: deep, in: query, style: deepObject, schema: { type: object, properties: { a: { type: array, items: { type: integer } }, b: { type: object, properties: { c: { type: string } } } } } }
`;

let folder: ApiFolder;
let rules: RequestRules;
beforeAll(async () => {
  folder = await apiFolder({ 'openapi.yaml': openapi(PATHS) });
  const [operation] = await folder.load();
  if (operation?.rules === undefined) throw new Error('the operation has no rules');
  rules = operation.rules;
});
afterAll(() => folder.remove());

function refused(search: string): readonly string[] {
  const errors = new FieldErrors();
  checkQuery(rules.query, search, errors);
  return errors.list.map(({ field }) => field);
}

const piece = fc.constantFrom(
  'page',
  '[size]',
  '[',
  ']',
  '%5B',
  'deep',
  '[a]',
  '[]',
  '[b]',
  '[c]',
  '=',
  '&',
  '+',
  '%',
  '%FF',
  '1',
  'é',
  '__proto__',
  'constructor',
  '\u0000',
);

describe('any query at all', () => {
  test('is validated without a failure of the gateway, and with a bounded response', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string({ unit: 'binary' })), { maxLength: 60 }), (pieces) => {
        expect(refused(`?${pieces.join('')}`).length).toBeLessThanOrEqual(100);
      }),
    );
  });

  test('is accepted only with a page size that every parser reads as 1 to 100', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer({ min: -200, max: 200 }).map(String), fc.string()), (size) => {
        const passes = refused(`?page[size]=${encodeURIComponent(size)}`).length === 0;
        const isSize = /^[1-9]\d{0,2}$/.test(size) && Number(size) <= 100;
        expect([size, passes]).toEqual([size, isSize]);
      }),
    );
  });

  test('is validated in the same way however its characters are escaped', () => {
    const escaped = (text: string) =>
      [...Buffer.from(text)].map((octet) => `%${octet.toString(16).padStart(2, '0')}`).join('');
    fc.assert(
      fc.property(
        fc.constantFrom('page[size]', 'filter[status][eq]', 'deep[b][c]', 'limit'),
        fc.string(),
        (name, value) => {
          const plain = `?${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
          expect(refused(`?${escaped(name)}=${escaped(value)}`)).toEqual(refused(plain));
        },
      ),
    );
  });
});
