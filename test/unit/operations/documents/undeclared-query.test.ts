import { expect, onTestFinished, test } from 'vitest';
import { FieldErrors } from '../../../../src/domain/field-errors.ts';
import { checkQuery } from '../../../../src/operations/validation/query.ts';
import { apiFolder, openapi } from '../../../fixtures/api-files.ts';

const LIMIT = "parameters: [{ name: limit, in: query, schema: { type: integer } }], responses: { '200': {} }";
const PATHS = `
/declared: { get: { ${LIMIT} } }
/strict: { get: { x-weir: { validate: parameters }, ${LIMIT} } }
/bare: { get: { responses: {} } }
/strict-bare: { get: { x-weir: { validate: body }, responses: {} } }
`;

/** The operations that refuse each query. */
async function refusing(setting: string): Promise<Readonly<Record<string, readonly string[]>>> {
  const folder = await apiFolder({ 'openapi.yaml': openapi(PATHS) });
  onTestFinished(() => folder.remove());
  const operations = await folder.load(`{ openapi: openapi.yaml, undeclaredQuery: ${setting} }`);
  const refusals = (search: string) =>
    operations
      .filter(({ rules }) => {
        const errors = new FieldErrors();
        if (rules !== undefined) checkQuery(rules.query, search, errors);
        return errors.list.length > 0;
      })
      .map(({ path }) => path);
  return {
    undeclared: refusals('?utm=5'),
    invalid: refusals('?limit=x'),
    unreadable: refusals('?city=K%F6ln'),
  };
}

test('undeclaredQuery: forward lets undeclared parameters pass, unless validate is set', async () => {
  expect(await refusing('forward')).toEqual({
    undeclared: ['/strict', '/strict-bare'],
    invalid: ['/declared', '/strict', '/strict-bare'],
    unreadable: ['/declared', '/strict', '/strict-bare'],
  });
});

test('by default, one declared parameter refuses all others', async () => {
  expect(await refusing('reject')).toEqual({
    undeclared: ['/declared', '/strict', '/strict-bare'],
    invalid: ['/declared', '/strict', '/strict-bare'],
    unreadable: ['/declared', '/strict', '/strict-bare'],
  });
});

test('a query parameter that carries an API key is accepted although it is not declared', async () => {
  const keys =
    "components: { securitySchemes: { key: { $ref: '#/components/x-key' }, other: { type: apiKey, in: query, name: other } }, x-key: { type: apiKey, in: query, name: api_key } }\nsecurity: [{ key: [] }]\n";
  const paths = `/a: { get: { ${LIMIT} } }\n/b: { get: { security: [{ other: [] }, {}], ${LIMIT} } }`;
  const folder = await apiFolder({ 'openapi.yaml': openapi(paths, '3.1.0', keys) });
  onTestFinished(() => folder.remove());
  const refused = (await folder.load()).map(({ rules }) => {
    const errors = new FieldErrors();
    if (rules !== undefined) checkQuery(rules.query, '?api_key=x&other=y&limit=1', errors);
    return errors.list.map(({ field }) => field);
  });
  expect(refused).toEqual([['other'], ['api_key']]);
});
