import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkCosts, placesIn } from '../../../../src/config/checks/costs.ts';
import { parseLimits } from '../../../../src/config/files/limits/parse-limits.ts';
import { formatProblem } from '../../../../src/config/problem.ts';
import { type ApiFolder, apiFolder, openapi } from '../../../fixtures/api-files.ts';

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder();
});
afterEach(() => folder.remove());

const problems = (settings?: string) => folder.problems(settings);

const post = (extension: string) => openapi(`/a: { post: { x-weir: ${extension} } }`);

/** Where the `x-weir` is. */
const AT = 'openapi.yaml:4: paths["/a"].post.x-weir';

describe('the settlement of an operation', () => {
  test('is read from a document and from the list, inherited, and replaced by the innermost', async () => {
    const above = 'x-weir: { cost: 4000, settle: { json: /usage/total_tokens }, refundOn: [5xx] }\n';
    const paths = '/a: { post: {}, put: { x-weir: { cost: 50, settle: { header: X-Cost }, refundOn: [] } } }';
    await folder.write('openapi.yaml', openapi(paths, '3.1.0', above));
    const reserve = 'reserve: { json: /max_tokens, most: 32000 }, settle: { bytes: 1024 }';
    const list = `list: [{ method: POST, path: /b, cost: 20, ${reserve}, refundOn: [404] }, { method: GET, path: /c }]`;
    expect(await folder.load(`{ openapi: openapi.yaml, refundOn: [503], ${list} }`)).toMatchObject([
      {
        path: '/a',
        cost: 4000,
        settlement: { settle: { json: { text: '/usage/total_tokens' } }, refundOn: new Set(['5xx']) },
      },
      { path: '/a', cost: 50, settlement: { settle: { header: 'x-cost' }, refundOn: new Set() } },
      {
        path: '/b',
        cost: 20,
        settlement: {
          reserve: { json: { names: ['max_tokens'] }, most: 32_000, maxBodyBytes: 262_144 },
          settle: { bytes: 1024 },
          refundOn: new Set(['404']),
        },
      },
      {
        path: '/c',
        cost: 1,
        settlement: { reserve: undefined, settle: undefined, refundOn: new Set(['503']) },
      },
    ]);
  });

  test.each([
    [
      '{ settle: { json: usage } }',
      '.settle.json: must be a JSON Pointer to a member, such as /usage/total_tokens, is "usage"',
    ],
    [
      '{ settle: { json: "" } }',
      '.settle.json: must be a JSON Pointer to a member, such as /usage/total_tokens, is empty',
    ],
    [
      '{ settle: { json: /a~2 } }',
      '.settle.json: must be a JSON Pointer to a member, such as /usage/total_tokens, is "/a~2"',
    ],
    [
      '{ settle: { header: "x cost" } }',
      '.settle.header: must be the name of a header field, such as x-cost, is "x cost"',
    ],
    ['{ settle: { bytes: 0 } }', '.settle.bytes: must be a whole number from 1 to 1000000000, is 0'],
    ['{ settle: { } }', '.settle: is empty: a cost has one source: json, header or bytes'],
    [
      '{ settle: { json: /a, bytes: 5 } }',
      '.settle: names json and bytes: a cost has one source: json, header or bytes',
    ],
    ['{ settle: { jsno: /a } }', '.settle.jsno: unknown key "jsno": did you mean "json"?'],
    ['{ settle: /a }', '.settle: must be a mapping with one of json, header or bytes, is "/a"'],
    ['{ reserve: { json: /a } }', '.reserve.most: is missing: expected a whole number from 1 to 1000000'],
    [
      '{ reserve: { json: /a, most: 2000000 } }',
      '.reserve.most: must be a whole number from 1 to 1000000, is 2000000',
    ],
    [
      '{ cost: 9, reserve: { json: /a, most: 8 } }',
      '.reserve.most: is 8, below the cost 9, which is reserved if the body has no /a: raise it to at least the cost',
    ],
    ['{ refundOn: 5xx }', '.refundOn: must be a list of statuses, such as [5xx, 404], is "5xx"'],
    [
      '{ refundOn: [6xx] }',
      '.refundOn.0: must be a status from 200 to 599, or a class such as 5xx, is "6xx"',
    ],
    [
      '{ refundOn: [5xx, 99] }',
      '.refundOn.1: must be a status from 200 to 599, or a class such as 5xx, is 99',
    ],
    [
      '{ cost: 11, refundOn: [5xx] }',
      '.cost: must be a whole number from 1 to 10, is 11: operations.maxCost sets the maximum',
    ],
    [
      '{ cost: 1000001, settle: { bytes: 1 } }',
      '.cost: must be a whole number from 1 to 1000000, is 1000001',
    ],
    [
      '{ public: true, cost: 0, settle: { bytes: 1 } }',
      '.settle: has no effect on an operation that costs 0: set a cost of at least 1',
    ],
  ])('%s is refused where it is written', async (extension, problem) => {
    await folder.write('openapi.yaml', post(extension));
    expect(await problems()).toEqual([AT + problem]);
  });

  test('is refused in the list as in a document', async () => {
    const reserve = 'reserve: { json: /a, most: 3 }';
    const settle = 'settle: { json: /a, header: b }';
    const list = `list: [{ method: POST, path: /a, cost: 4, ${reserve}, ${settle} }, { method: GET, path: /b, public: true, cost: 0, settle: { bytes: 1 } }]`;
    await folder.write('weir.yaml', `operations:\n  ${list}\n`);
    expect(await problems(`{ ${list} }`)).toEqual([
      'weir.yaml:2: operations.list.0.settle: names json and header: a cost has one source: json, header or bytes',
      'weir.yaml:2: operations.list.0.reserve.most: is 3, below the cost 4, which is reserved if the body has no /a: raise it to at least the cost',
      'weir.yaml:2: operations.list.1.settle: has no effect on an operation that costs 0: set a cost of at least 1',
    ]);
  });

  test('has a most that fits every bucket it is charged to', async () => {
    await folder.write('openapi.yaml', post('{ cost: 40, reserve: { json: /a, most: 5000 } }'));
    const operations = await folder.load();
    const limits = parseLimits('defaults: { account-write: 4000 }', 'limits.yaml');
    const found = checkCosts(operations, limits, placesIn('limits.yaml')).map(formatProblem);
    expect(found).toContainEqual(
      expect.stringMatching(
        /^limits\.yaml: defaults\.account-write: the limit 4000 is below the 5000 points that operation POST \/a may reserve, .*: raise the limit to at least 5000, or lower `reserve\.most` at .*openapi\.yaml:4$/,
      ),
    );
  });
});
