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
      - { name: 'page[token]', in: query, schema: { type: string } }
      - { name: 'filter[status][eq]', in: query, schema: { type: string, enum: [Activated, "Zurück"] } }
      - { name: 'filter[createdAt][gte]', in: query, schema: { type: string, format: date-time } }
/audit-logs:
  get: { parameters: [{ name: 'page[size]', in: query, schema: { type: integer, minimum: 1, maximum: 25 } }] }
/plain: { get: { x-weir: { validate: parameters } } }
/undescribed: { get: {} }
/values:
  get:
    parameters:
      - { name: must, in: query, required: true, schema: { type: boolean } }
      - { name: number, in: query, schema: { type: number, exclusiveMinimum: 0 } }
      - { name: either, in: query, schema: { anyOf: [{ type: integer }, { type: string, enum: ['', all] }] } }
      - { name: many, in: query, schema: { type: array, maxItems: 2, items: { type: integer } } }
      - { name: comma, in: query, explode: false, schema: { type: array, items: { enum: [a, b] } } }
      - { name: pipe, in: query, style: pipeDelimited, explode: false, schema: { type: array, items: { type: integer } } }
      - { name: json, in: query, content: { application/json: { schema: { type: object, required: [a] } } } }
      - { name: text, in: query, schema: { type: string } }
      - { name: amount, in: query, schema: { type: number, multipleOf: 0.01 } }
      - { name: step, in: query, schema: { type: number, multipleOf: 2.5 } }
/deep:
  get:
    parameters:
      - name: filter
        in: query
        style: deepObject
        schema:
          type: object
          properties:
            status: { type: object, properties: { eq: { type: string }, in: { type: array, items: { type: string } } } }
            amount: { type: integer }
            any: { type: object, additionalProperties: { type: string } }
      - { name: ids, in: query, style: deepObject, schema: { type: array, items: { type: integer } } }
      - name: created
        in: query
        style: deepObject
        schema: { anyOf: [{ type: integer }, { type: object, properties: { gt: { type: integer } } }] }
/typed:
  get:
    parameters:
      - name: filter
        in: query
        style: deepObject
        schema: { type: object, properties: { a: { type: string } }, additionalProperties: { type: integer } }
      - { name: any, in: query, style: deepObject, schema: { type: object, additionalProperties: { type: object, properties: { gt: { type: number } } } } }
      - { name: by, in: query, style: deepObject, schema: { type: object, patternProperties: { '^n': { type: integer } }, properties: { x: { type: string } } } }
      - { name: of, in: query, style: deepObject, schema: { type: object, properties: { pair: { type: array, prefixItems: [{ type: integer }, { type: string }] } } } }
      - { name: pair, in: query, schema: { type: array, prefixItems: [{ type: integer }, { type: string }], items: { type: boolean } } }
/items:
  get:
    parameters:
      - name: items
        in: query
        style: deepObject
        schema:
          type: array
          items:
            type: object
            required: [price]
            properties:
              quantity: { type: integer }
              price: { type: object, required: [currency, product], properties: { currency: { type: string }, product: { type: string } } }
/lenient:
  get:
    parameters:
      - { name: q, in: query, allowEmptyValue: true, schema: { type: integer } }
      - { name: qs, in: query, allowEmptyValue: true, schema: { type: array, items: { type: integer } } }
      - { name: ids, in: query, schema: { oneOf: [{ enum: [all] }, { type: array, items: { type: integer } }] } }
      - { name: csv, in: query, explode: false, schema: { oneOf: [{ enum: ['a,b'] }, { type: array, items: { type: integer } }] } }
/referring:
  get:
    parameters:
      - { name: anchor, in: query, schema: { $ref: '#limit' } }
      - { name: anchors, in: query, schema: { $ref: '#limits' } }
      - { name: id, in: query, schema: { $ref: 'https://example.com/schemas/limit' } }
      - { name: 'page[size]', in: query, schema: { $ref: '#/components/schemas/Size', maximum: 50 } }
      - { name: sibling, in: query, schema: { $ref: '#/components/schemas/Any', type: integer } }
      - { name: if, in: query, schema: { if: { type: integer }, then: { minimum: 5 }, else: { enum: [all] } } }
      - name: deep
        in: query
        style: deepObject
        schema: { allOf: [{ type: object, properties: { a: { type: integer } } }], additionalProperties: true }
      - name: closed
        in: query
        style: deepObject
        schema: { type: object, properties: { a: { type: integer } }, then: { properties: { b: { type: integer } } }, if: { required: [b] } }
      - name: some
        in: query
        style: deepObject
        schema: { type: object, if: { properties: { a: { const: 1 } } }, then: { required: [b] } }
/pageable:
  get:
    parameters:
      - name: pageable
        in: query
        required: true
        schema:
          type: object
          allOf:
            - $ref: '#/components/schemas/Pageable'
            - { properties: { page: { maximum: 9 } } }
/pages:
  get:
    parameters:
      - name: pages
        in: query
        schema:
          type: object
          properties: { 'page[size]': { $ref: '#/components/schemas/Size' }, 'page[token]': { description: any } }
          allOf: [{ properties: { 'page[size]': { maximum: 500 } } }]
/unread:
  get:
    parameters:
      - { name: color, in: query, explode: false, required: true, schema: { type: object, properties: { r: { type: integer } } } }
      - { name: xml, in: query, content: { application/xml: { schema: { type: object } } } }
      - { name: rows, in: query, schema: { type: array, items: { type: array, items: { type: integer } } } }
/nullable:
  get: { parameters: [{ name: o, in: query, schema: { type: [object, 'null'], properties: { a: { type: integer }, b: { enum: [x, null] }, c: { type: object } } } }] }
/spread:
  get:
    parameters:
      - { name: options, in: query, required: true, schema: { type: object, required: [a], properties: { a: { type: integer }, b: { type: boolean } } } }
/open:
  get: { parameters: [{ name: rest, in: query, schema: { type: object, properties: {}, additionalProperties: true } }] }
`;

const SCHEMAS = `components:
  schemas:
    Limit: { $anchor: limit, type: integer }
    Limits: { $anchor: limits, type: array, items: { type: integer } }
    WithId: { $id: 'https://example.com/schemas/limit', type: integer }
    Size: { minimum: 2 }
    Any: { description: any }
    Pageable: { type: object, required: [page], properties: { page: { type: integer }, sort: { type: array, items: { enum: [a, b] } } } }
`;

let folder: ApiFolder;
const rules = new Map<string, RequestRules | undefined>();
beforeAll(async () => {
  folder = await apiFolder({ 'openapi.yaml': openapi(PATHS, '3.1.0', SCHEMAS) });
  for (const operation of await folder.load()) rules.set(operation.path, operation.rules);
});
afterAll(() => folder.remove());

/** The fields that a query of an operation is refused for. */
function refused(path: string, query: string): Record<string, string> {
  const errors = new FieldErrors();
  const found = rules.get(path);
  if (found === undefined) throw new Error(`no rules for ${path}`);
  checkQuery(found.query, query === '' ? '' : `?${query}`, errors);
  return Object.fromEntries(errors.list.map(({ field, message }) => [field, message]));
}

describe('the conventions for lists', () => {
  test.each([
    '',
    'page[size]=1',
    'page[size]=100',
    'page[token]=abc&page[size]=25',
    'filter[status][eq]=Activated',
    '&&page[size]=5&',
  ])('let %j through', (query) => expect(refused('/list', query)).toEqual({}));

  test.each([
    '0',
    '101',
    '-1',
    '1.5',
    '1e1',
    '1.0',
    '',
    '+5',
    '%2B5',
    '%205',
    '5%20',
    '0x10',
    '05',
    'ten',
    '٥',
    '%EF%BC%95',
    'null',
    '9999999999999999999999',
  ])('refuse page[size]=%s', (size) =>
    expect(Object.keys(refused('/list', `page[size]=${size}`))).toEqual(['page[size]']),
  );

  test('a constraint in the document replaces the convention', () => {
    expect(refused('/audit-logs', 'page[size]=25')).toEqual({});
    expect(refused('/audit-logs', 'page[size]=26')).toEqual({ 'page[size]': 'must be <= 25' });
  });

  test('brackets mean the same encoded or not, and together they are one parameter twice', () => {
    expect(refused('/list', 'page%5Bsize%5D=101')).toEqual({ 'page[size]': 'must be <= 100' });
    expect(refused('/list', 'page%5bsize%5d=5')).toEqual({});
    expect(refused('/list', 'page[size]=5&page%5Bsize%5D=5')).toEqual({
      'page[size]': 'is given more than once',
    });
  });

  test('unknown parameters are all reported together, pageSize and limit with the correct name', () => {
    expect(
      refused(
        '/list',
        'pageSize=5&limit=5&Page[size]=5&page[size]=0&filter[status][ne]=x&filter[name][eq]=y&sort',
      ),
    ).toEqual({
      pageSize: 'is not supported: the parameter is page[size]',
      limit: 'is not supported: the parameter is page[size]',
      'Page[size]': 'is not a parameter of this operation',
      'page[size]': 'must be >= 1',
      'filter[status][ne]': 'is not a parameter of this operation',
      'filter[name][eq]': 'is not a parameter of this operation',
      sort: 'is not a parameter of this operation',
    });
    expect(Object.keys(refused('/plain', 'x=1'))).toEqual(['x']);
    expect(refused('/undescribed', 'x=1')).toEqual({});
  });

  test('an empty token is refused, for the first page has none', () => {
    expect(Object.keys(refused('/list', 'page[token]='))).toEqual(['page[token]']);
    expect(Object.keys(refused('/list', 'page[token]'))).toEqual(['page[token]']);
  });

  test('formats are checked: date-time', () => {
    expect(refused('/list', 'filter[createdAt][gte]=2026-11-20T10:00:00Z')).toEqual({});
    expect(refused('/list', 'filter[createdAt][gte]=2026-11-20T10:00:00%2B01:00')).toEqual({});
    expect(Object.keys(refused('/list', 'filter[createdAt][gte]=yesterday'))).toEqual([
      'filter[createdAt][gte]',
    ]);
  });
});

describe('the text of a query', () => {
  test('Unicode is compared after decoding, without normalisation', () => {
    expect(refused('/list', 'filter[status][eq]=Zur%C3%BCck')).toEqual({});
    expect(Object.keys(refused('/list', 'filter[status][eq]=Zuru%CC%88ck'))).toEqual(['filter[status][eq]']);
  });

  test.each(['%FF', '%C0%AF', '%ED%A0%80', '%', '%4', '%zz'])(
    'the escape %s is refused, in a value and in a name',
    (octets) => {
      expect(refused('/values', `must=true&text=${octets}`)).toEqual({
        text: 'has an escape that is not valid UTF-8',
      });
      expect(refused('/open', `${octets}=1`)).toEqual({ [octets]: 'has an escape that is not valid UTF-8' });
    },
  );

  test('characters that must be percent-encoded are refused', () => {
    expect(refused('/values', 'must=true&text=\u00e9')).toEqual({
      text: 'has characters that need percent-encoding',
    });
  });

  test('at most a hundred errors are reported, and long names are truncated', () => {
    const many = Array.from({ length: 1000 }, (_, index) => `x${index}=1`).join('&');
    expect(Object.keys(refused('/plain', many))).toHaveLength(100);
    expect(Object.keys(refused('/plain', 'y'.repeat(5000)))[0]).toHaveLength(203);
  });

  test('inherited property names are ordinary names', () => {
    expect(Object.keys(refused('/plain', '__proto__=1&constructor=1&toString=1'))).toEqual([
      '__proto__',
      'constructor',
      'toString',
    ]);
    expect(Object.keys(refused('/deep', 'filter[__proto__]=1&filter[constructor][eq]=1'))).toHaveLength(2);
  });
});

describe('the forms of OpenAPI parameters', () => {
  const passes = [
    'must=true',
    'number=0.5',
    'number=1e-3',
    'either=5',
    'either=all',
    'either=',
    'many=1&many=2',
    'comma=a,b',
    'pipe=1|2',
    'pipe=1%7C2',
    'json=%7B%22a%22:1%7D',
    'text=',
    'text=a+b',
  ];
  test.each(passes)('%s passes', (query) => {
    expect(refused('/values', query.startsWith('must') ? query : `must=false&${query}`)).toEqual({});
  });

  const fails: [string, string][] = [
    ['must=yes', 'must'],
    ['must=', 'must'],
    ['must=true&must=true', 'must'],
    ['text=a', 'must'],
    ['must=true&number=0', 'number'],
    ['must=true&either=some', 'either'],
    ['must=true&many=1&many=x', 'many[1]'],
    ['must=true&many=1&many=2&many=3', 'many'],
    ['must=true&comma=a,c', 'comma[1]'],
    ['must=true&pipe=1,2', 'pipe[0]'],
    ['must=true&json={', 'json'],
    ['must=true&json=%7B%7D', 'json[a]'],
  ];
  test.each(fails)('%s is refused for %s', (query, field) => {
    expect(Object.keys(refused('/values', query))).toEqual([field]);
  });

  test('a decimal amount is a multiple of the smallest unit, however large it is, and a part of the unit is not', () => {
    for (const amount of [
      '19.99',
      '0.29',
      '-4.35',
      '1.1',
      '0',
      '8.61',
      '123456789.07',
      '90071992547409.91',
      '1e21',
    ]) {
      expect(refused('/values', `must=true&amount=${amount}`)).toEqual({});
    }
    const message = 'must be multiple of 0.01';
    for (const amount of [
      '19.999',
      '0.001',
      '0.0000001',
      '19.9900001',
      '123456789.075',
      '1234567890123.005',
    ]) {
      expect(refused('/values', `must=true&amount=${amount}`)).toEqual({ amount: message });
    }
    expect(refused('/values', 'must=true&step=7.5')).toEqual({});
    expect(refused('/values', 'must=true&step=7.4')).toEqual({ step: 'must be multiple of 2.5' });
  });

  test('deep objects take what their schema declares', () => {
    const query =
      'filter[status][eq]=a&filter[status][in][]=b&filter[status][in][]=c&filter[amount]=5&filter[any][thing]=x&ids[]=1&ids[1]=2&created[gt]=1';
    expect(refused('/deep', query)).toEqual({});
    expect(refused('/deep', 'created=5')).toEqual({});
    const wrong =
      'filter[status][ne]=a&filter[amount]=x&filter[name]=y&filter[=1&filter]=1&ids[x]=1&created=5&created[gt]=1&filter[status]=z&filter[amount]=6';
    expect(Object.keys(refused('/deep', wrong)).sort()).toEqual(
      [
        'created[gt]',
        'filter[',
        'filter[amount]',
        'filter[name]',
        'filter[status]',
        'filter[status][ne]',
        'filter]',
        'ids',
      ].sort(),
    );
  });

  test('the members of an object in a list are read together, by its index', () => {
    const prices = (index: string) =>
      `items[${index}][price][currency]=eur&items[${index}][price][product]=p&items[${index}][quantity]=2`;
    expect(refused('/items', `${prices('0')}&${prices('1')}`)).toEqual({});
    expect(refused('/items', 'items[5][price][currency]=eur&items[7][quantity]=x')).toEqual({
      'items[0][price][product]': 'is missing',
    });
    expect(refused('/items', `${prices('0')}&items[1][quantity]=2`)).toEqual({
      'items[1][price]': 'is missing',
    });
    const twice = `${prices('0')}&items[0][quantity]=3&items[00][price][product]=4`;
    expect(Object.keys(refused('/items', twice)).sort()).toEqual([
      'items[00][price][product]',
      'items[0][quantity]',
    ]);
  });

  test('items are in the order of their indexes, whatever the order of the query', () => {
    expect(refused('/typed', 'of[pair][1]=a&of[pair][0]=5')).toEqual({});
    expect(refused('/typed', 'of[pair][1]=5&of[pair][0]=a')).toEqual({ 'of[pair][0]': 'must be integer' });
    expect(refused('/typed', 'of[pair][]=5&of[pair][]=a')).toEqual({});
    expect(refused('/typed', 'of[pair][]=a&of[pair][0]=5')).toEqual({});
  });

  test('an empty value is valid where allowEmptyValue says so', () => {
    for (const query of ['q', 'q=', 'q=5', 'qs', 'qs=', 'qs=1&qs=2'])
      expect(refused('/lenient', query)).toEqual({});
    expect(Object.keys(refused('/lenient', 'q=x&qs=&qs=1'))).toEqual(['q', 'qs[0]']);
  });

  test('a single value is valid where the schema allows it beside a list', () => {
    for (const query of ['ids=all', 'ids=1', 'ids=1&ids=2', 'csv=a,b', 'csv=1,2']) {
      expect(refused('/lenient', query)).toEqual({});
    }
    for (const query of ['ids=some', 'ids=all&ids=all', 'csv=a', 'csv=a,b,1']) {
      expect(Object.keys(refused('/lenient', query))).not.toEqual([]);
    }
  });

  test('properties and items are read by the schemas that apply to them', () => {
    const query = 'filter[a]=5&filter[b]=5&any[x][gt]=0.5&by[n1]=5&by[x]=5&pair=5&pair=6&pair=true';
    expect(refused('/typed', query)).toEqual({});
    const wrong =
      'filter[a]=x&filter[b]=x&any[x][gt]=y&any[x][lt]=1&by[n1]=x&by[other]=1&pair=x&pair=6&pair=7';
    expect(Object.keys(refused('/typed', wrong)).sort()).toEqual(
      ['any[x][gt]', 'any[x][lt]', 'by[n1]', 'filter[b]', 'pair[0]'].sort(),
    );
  });

  test('a schema is read with its $refs, their siblings, and its conditions', () => {
    const query =
      'anchor=5&anchors=1&anchors=2&id=5&page[size]=50&sibling=5&if=5&deep[x]=1&deep[a]=1&closed[b]=1&some[x]=1&some[a]=2';
    expect(refused('/referring', query)).toEqual({});
    expect(refused('/referring', 'if=all')).toEqual({});
    const wrong =
      'anchor=x&anchors=1&anchors=x&id=x&page[size]=51&sibling=x&if=4&deep[a]=x&closed[b]=x&closed[c]=1&some[a]=1';
    expect(Object.keys(refused('/referring', wrong)).sort()).toEqual(
      [
        ...['anchor', 'anchors[1]', 'closed[b]', 'closed[c]', 'deep[a]', 'id', 'if', 'page[size]', 'sibling'],
        'some[b]',
      ].sort(),
    );
    expect(Object.keys(refused('/referring', 'page[size]=1'))).toEqual(['page[size]']);
    expect(Object.keys(refused('/referring', 'page[size]=2.0'))).toEqual(['page[size]']);
  });

  test('the properties of an exploded object may be in its allOf', () => {
    expect(refused('/pageable', 'page=1&sort=a&sort=b')).toEqual({});
    expect(Object.keys(refused('/pageable', 'page=10&sort=c&size=1')).sort()).toEqual([
      'page',
      'size',
      'sort[0]',
    ]);
    expect(Object.keys(refused('/pageable', 'sort=a'))).toEqual(['page']);
  });

  test('the properties of an exploded object follow the conventions, unless one of their schemas specifies otherwise', () => {
    for (const size of [2, 500]) expect(refused('/pages', `page[size]=${size}&page[token]=a`)).toEqual({});
    for (const size of ['1', '501', '2.5', 'x'])
      expect(Object.keys(refused('/pages', `page[size]=${size}&page[token]=`))).toEqual([
        'page[size]',
        'page[token]',
      ]);
  });

  test('objects that cannot be read from text are not validated, and a required one must be there', () => {
    expect(refused('/unread', 'color=r,100&xml=%3Ca/%3E&rows=1,2&rows=3')).toEqual({});
    expect(refused('/unread', 'xml=a&xml=b')).toEqual({
      color: 'is missing',
      xml: 'is given more than once',
    });
  });

  test('an object that may be null is its properties, too', () => {
    expect(refused('/nullable', 'a=1&b=x&c=any')).toEqual({});
    expect(Object.keys(refused('/nullable', 'a=x&b=y&o=1')).sort()).toEqual(['a', 'b', 'o']);
  });

  test('an object in the default form is its properties, and an open one lets others through', () => {
    expect(refused('/spread', 'a=1&b=true')).toEqual({});
    expect(Object.keys(refused('/spread', 'b=1&c=1'))).toEqual(['c', 'a', 'b']);
    expect(refused('/open', 'anything=goes')).toEqual({});
  });
});
