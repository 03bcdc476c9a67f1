import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FieldErrors } from '../../../src/domain/field-errors.ts';
import { Refusal } from '../../../src/domain/problems.ts';
import type { ListedOperation } from '../../../src/operations/listed-operation.ts';
import { checkPath } from '../../../src/operations/validation/path-and-headers.ts';
import { OperationTable, type UnlistedPolicy } from '../../../src/stages/match.ts';
import { type ApiFolder, apiFolder, openapi } from '../../fixtures/api-files.ts';

const PATHS = `
/things/{id}: { get: { operationId: thing, x-weir: { cost: 9 } } }
/things/me: { get: { operationId: me } }
/things/{id}:cancel: { post: { operationId: cancel, x-weir: { cost: 7 } } }
/files/{name}.{format}: { get: { operationId: file, x-weir: { cost: 2 } } }
/files/{name}.tar.{format}: { get: { operationId: archive, x-weir: { cost: 3 } } }
/a/{x}/b: { get: { operationId: ab } }
/a/b/{x}: { get: { operationId: abx } }
/Grüße/{who}: { get: { operationId: greet } }
/Mixed: { get: { operationId: mixed, x-weir: { public: true, cost: 9 } } }
/mixed: { get: { operationId: lower } }
/with space: { get: { operationId: space } }
`;

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder({ 'openapi.yaml': openapi(PATHS) });
});
afterEach(() => folder.remove());

async function finder(
  letterCase: 'insensitive' | 'sensitive' = 'insensitive',
  unlisted: UnlistedPolicy = 'charge',
) {
  const prices = new OperationTable(await folder.load(), unlisted, letterCase);
  return (method: string, path: string) => {
    const found = prices.find(method, path);
    if (found === 'free') return found;
    return found instanceof Refusal ? found.status : found.id;
  };
}

describe('the price list', () => {
  test.each([
    ['GET', '/things/1', 'thing'],
    ['GET', '/things/me', 'me'],
    ['HEAD', '/things/1', 'thing'],
    ['POST', '/things/1:cancel', 'cancel'],
    ['POST', '/things/1%3Acancel', 'cancel'],
    ['POST', '/things/1:CANCEL', 'cancel'],
    ['GET', '/files/a.b', 'file'],
    ['GET', '/files/a.tar.gz', 'archive'],
    ['GET', '/files/A.TAR.GZ', 'archive'],
    ['GET', '/THINGS/1', 'thing'],
    // Of paths that differ only in case, the one that needs a caller.
    ['GET', '/Mixed', 'lower'],
    ['GET', '/MIXED', 'lower'],
    ['GET', '/a/b/b', 'abx'],
    ['GET', '/a/x/b', 'ab'],
    ['GET', '/Gr%C3%BC%C3%9Fe/du', 'greet'],
    ['GET', '/with%20space', 'space'],
    ['OPTIONS', '/things/1', 'free'],
    ['GET', '/nothing', 'unlisted'],
    ['GET', '/things/1/more', 'unlisted'],
    ['DELETE', '/things/1', 'unlisted'],
    ['TRACE', '/things/1', 405],
    ['get', '/things/1', 405],
  ])('%s %s is %s', async (method, path, id) => {
    expect((await finder())(method, path)).toBe(id);
  });

  test('no spelling of an id turns an expensive operation into an unlisted one', async () => {
    const find = await finder();
    expect(find('GET', `/things/${'x'.repeat(10_000)}`)).toBe('thing');
    expect(find('GET', '/things/%FF')).toBe(400);
    expect(find('GET', '/things/%E2%82%AC')).toBe('thing');
  });

  test('letter case matters if the upstream is case-sensitive', async () => {
    const find = await finder('sensitive');
    expect(find('GET', '/THINGS/1')).toBe('unlisted');
    expect(find('POST', '/things/1:CANCEL')).toBe('unlisted');
  });

  test('an unlisted operation has the configured cost, or is not found', async () => {
    const expensive = new OperationTable([], { cost: 4 });
    expect(expensive.find('POST', '/x')).toMatchObject({ cost: 4, kind: 'write', listed: false });
    expect((await finder('insensitive', 'reject'))('GET', '/nothing')).toBe(404);
  });

  test('the parameters of a path are validated only where the declared path has them', async () => {
    const parameters = '[{ name: id, in: path, required: true, schema: { type: integer } }]';
    await folder.write(
      'openapi.yaml',
      openapi(`/things/{id}: { get: { operationId: thing, parameters: ${parameters} } }`),
    );
    const prices = new OperationTable(await folder.load(), 'charge');
    const isValid = (path: string) => {
      const operation = prices.find('GET', path);
      if (operation === 'free' || operation instanceof Refusal) throw new Error(`${path} is not charged`);
      expect(operation.id, path).toBe('thing');
      const errors = new FieldErrors();
      checkPath(operation.rules?.path ?? [], path, errors);
      return errors.isEmpty;
    };
    expect(isValid('/things/42')).toBe(true);
    expect(isValid('/things/42/')).toBe(true);
    expect(isValid('/things/x')).toBe(false);
    expect(isValid('/index.php/things/42')).toBe(true);
  });

  test('a parameter is found where the router finds it: in any letter case, and next to escaped literals', async () => {
    const get = (name: string, schema: string) =>
      `{ get: { operationId: ${name}, parameters: [{ name: id, in: path, required: true, schema: ${schema} }] } }`;
    const paths = [
      `/things/{id}:cancel: ${get('cancel', '{ type: integer }')}`,
      `/caf%C3%A9-{id}: ${get('menu', '{ type: integer }')}`,
      `/spots/{id}x{other}: ${get('spot', '{ maxLength: 2 }')}`,
    ];
    await folder.write('openapi.yaml', openapi(paths.join('\n')));
    const isValid = async (letterCase: 'insensitive' | 'sensitive', path: string, id: string) => {
      const operations = await folder.files('{}', letterCase).load();
      const operation = new OperationTable(operations, 'charge', letterCase).find('GET', path);
      expect(operation, path).toMatchObject({ id });
      const errors = new FieldErrors();
      checkPath((operation as ListedOperation).rules?.path ?? [], path, errors);
      return errors.isEmpty;
    };
    expect(await isValid('insensitive', '/things/42:CANCEL', 'cancel')).toBe(true);
    expect(await isValid('insensitive', '/things/x:CANCEL', 'cancel')).toBe(false);
    expect(await isValid('insensitive', '/caf%C3%A9-42', 'menu')).toBe(true);
    expect(await isValid('insensitive', '/CAF%C3%89-42', 'menu')).toBe(true);
    expect(await isValid('insensitive', '/caf%C3%A9-x', 'menu')).toBe(false);
    expect(await isValid('sensitive', '/caf%C3%A9-42', 'menu')).toBe(true);
    expect(await isValid('insensitive', '/spots/1X2x3', 'spot')).toBe(true);
    expect(await isValid('sensitive', '/spots/1X2x3', 'spot')).toBe(false);
  });

  test('a path with several meanings is charged and validated as its own operations, whatever others have their ids', async () => {
    const schema = "{ type: string, pattern: '^[a-z]+[.]json$' }";
    const get = (id: string, cost: number) =>
      `{ get: { operationId: ${id}, x-weir: { cost: ${cost} }, parameters: [{ name: id, in: path, schema: ${schema} }] } }`;
    const servers = 'servers: [{ url: /v1 }, { url: /api/v2 }]\n';
    const paths = [
      `/things/{id}: ${get('thing', 1)}`,
      '/things/export: { get: { operationId: export } }',
      `/files/{id}: ${get('thing', 1)}`,
      `/files/export: ${get('export', 9)}`,
    ];
    await folder.write('openapi.yaml', openapi(paths.join('\n'), '3.1.0', servers));
    const prices = new OperationTable(await folder.load(), 'charge');
    const costOf = (path: string) => {
      const operation = prices.find('GET', path);
      expect(operation, path).toHaveProperty('also');
      const { cost, rules } = operation as ListedOperation;
      const errors = new FieldErrors();
      checkPath(rules?.path ?? [], path, errors);
      expect(errors.list, path).toEqual([]);
      return cost;
    };
    for (const base of ['/v1', '/api/v2']) {
      expect(costOf(`${base}/things/export.json`)).toBe(1);
      expect(costOf(`${base}/files/export.json`)).toBe(9);
    }
  });

  test('other operations are in force from the next request on', async () => {
    const prices = new OperationTable(await folder.load(), 'charge');
    prices.replaceOperations([]);
    expect(prices.find('GET', '/things/1')).toMatchObject({ listed: false });
  });
});
