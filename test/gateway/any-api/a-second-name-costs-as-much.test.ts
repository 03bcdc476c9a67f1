import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Refusal } from '../../../src/domain/problems.ts';
import { OperationTable, type UnlistedPolicy } from '../../../src/stages/match.ts';
import type { PathProfile } from '../../../src/stages/path/folded-path.ts';
import { type ApiFolder, apiFolder, openapi } from '../../fixtures/api-files.ts';
import { remainingOf, startGateway, type TestGateway } from '../../fixtures/gateway.ts';

const PATHS = `
/reports: { get: { operationId: reports, x-weir: { cost: 10 } }, post: { operationId: report, x-weir: { cost: 9 } } }
/slashed/: { get: { operationId: slashed, x-weir: { cost: 8 } } }
/things/bulk: { get: { operationId: bulk, x-weir: { cost: 7 } } }
/things/{id}: { get: { operationId: thing, x-weir: { cost: 2 } } }
/things/{id}/open: { post: { operationId: open, x-weir: { cost: 5 } } }
/things/{id}:cancel: { post: { operationId: cancel, x-weir: { cost: 6 } } }
/openapi: { get: { operationId: viewer, x-weir: { cost: 4 } } }
/openapi.json: { get: { operationId: document, x-weir: { cost: 1 } } }
/v1.0/list: { get: { operationId: list, x-weir: { cost: 3 } } }
/health: { get: { operationId: health, x-weir: { public: true, cost: 0 } } }
/files/{name}: { get: { operationId: file, x-weir: { cost: 3 } } }
/files/upload: { get: { operationId: upload, x-weir: { public: true, cost: 4 } } }
/own/{id}: { get: { operationId: own, x-weir: { personOnly: true } } }
/own/all: { get: { operationId: all, x-weir: { cost: 5 } } }
/names/{name}.{format}: { get: { operationId: named } }
/names/{name}: { get: { operationId: unnamed, x-weir: { cost: 6 } } }
/: { get: { operationId: root, x-weir: { cost: 2 } } }
`;

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder({ 'openapi.yaml': openapi(PATHS) });
});
afterEach(() => folder.remove());

async function finder(
  unlisted: UnlistedPolicy = 'charge',
  trailingSlash: PathProfile['trailingSlash'] = 'same',
) {
  const prices = new OperationTable(await folder.load(), unlisted, 'insensitive', trailingSlash);
  return (method: string, path: string) => {
    const found = prices.find(method, path);
    if (found === 'free') return found;
    return found instanceof Refusal ? `${found.status}` : `${found.id} ${found.cost} ${found.access}`;
  };
}

describe('a path with a format suffix', () => {
  it.each([
    ['GET', '/reports.json', 'reports 10 caller'],
    ['HEAD', '/reports.json', 'reports 10 caller'],
    ['POST', '/reports.json', 'report 9 caller'],
    ['GET', '/REPORTS.Anything-at_all', 'reports 10 caller'],
    ['GET', '/reports.', 'reports 10 caller'],
    ['GET', '/reports.json/', 'reports 10 caller'],
    // Jersey leaves out a media type and a language, Spring everything after the first dot.
    ['GET', '/reports.json.en', 'reports 10 caller'],
    ['GET', '/reports.a.b.c', 'reports 10 caller'],
    ['GET', '/reports.caf%C3%A9', 'reports 10 caller'],
    ['GET', '/slashed.json', 'slashed 8 caller'],
    ['GET', '/slashed.json/', 'slashed 8 caller'],
    ['GET', '/things/bulk.json', 'bulk 7 caller'],
    ['GET', '/things/a.json', 'thing 2 caller'],
    ['GET', '/things/a.b.c', 'thing 2 caller'],
    ['POST', '/things/a.b:cancel.json', 'cancel 6 caller'],
    ['POST', '/things/1/open.json', 'open 5 caller'],
    // ASP.NET Web API: {controller}.{ext}/{id}
    ['GET', '/things.json/5', 'thing 2 caller'],
    ['POST', '/things.json/5/open', 'open 5 caller'],
    ['GET', '/openapi.json', 'document 1 caller'],
    ['GET', '/openapi.yaml', 'viewer 4 caller'],
    ['GET', '/openapi.json.gz', 'viewer 4 caller'],
    ['GET', '/v1.0/list', 'list 3 caller'],
    ['GET', '/v1.0/list.json', 'list 3 caller'],
    ['GET', '/.json', 'root 2 caller'],
    ['GET', '/names/a.b', 'unnamed 6 caller'],
    ['GET', '/names/{name}.{format}', 'named 1 caller'],
    ['GET', '/nothing.json', 'unlisted 1 caller'],
    ['DELETE', '/reports.json', 'unlisted 1 caller'],
    ['OPTIONS', '/reports.json', 'free'],
  ])('%s %s is charged as %s', async (method, path, expected) => {
    for (const trailingSlash of ['same', 'refuse', 'remove', 'distinct'] as const) {
      expect((await finder('charge', trailingSlash))(method, path), trailingSlash).toBe(expected);
    }
  });

  it.each([
    ['/health.json', 'health 1 caller'],
    ['/files/upload.png', 'upload 4 caller'],
    ['/own/all.json', 'all 5 person'],
    ['/health', 'health 0 public'],
    ['/health/', 'health 0 public'],
  ])('%s is charged as %s: it needs the strictest access of all that it may mean', async (path, expected) => {
    expect((await finder())('GET', path)).toBe(expected);
  });

  it('costs at least what an unlisted operation does', async () => {
    const find = await finder({ cost: 20 });
    expect(find('GET', '/reports.json')).toBe('reports 20 caller');
    expect(find('GET', '/reports/')).toBe('reports 10 caller');
  });

  it('is refused where unlisted operations are, unless the path itself is declared', async () => {
    const find = await finder('reject');
    expect(find('GET', '/reports.json')).toBe('404');
    expect(find('GET', '/index.php/reports')).toBe('404');
    expect(find('GET', '/reports/')).toBe('reports 10 caller');
    expect(find('GET', '/things/bulk.json')).toBe('bulk 7 caller');
  });
});

it.each([
  ['/index.php/reports', 'reports 10 caller'],
  ['/INDEX.PHP/things/7/', 'thing 2 caller'],
  ['/v1.0/app.php/list', 'list 3 caller'],
  ['/index.php', 'root 2 caller'],
  ['/index.php/nothing', 'unlisted 1 caller'],
])('the name of a script saves nothing: %s is charged as %s', async (path, expected) => {
  expect((await finder())('GET', path)).toBe(expected);
});

describe('at the gateway', () => {
  let gateway: TestGateway;
  afterEach(() => gateway.close());

  it('a path with two meanings is counted in the limits of both', async () => {
    const list = [
      { method: 'GET', path: '/things/bulk', cost: 1 },
      { method: 'GET', path: '/things/{id}', cost: 3 },
    ];
    const of = (operation: string) => ({ per: 'account', points: 10, window: '1m', operations: [operation] });
    gateway = await startGateway({
      limits: { limits: { bulks: of('GET /things/bulk'), single: of('GET /things/{id}') } },
      settings: { operations: { openapi: 'openapi.yaml', list } },
    });
    const both = await gateway.send('GET', '/things/bulk.json');
    expect(remainingOf(both)).toMatchObject({ bulks: 7, single: 7, 'account-read': 17 });
    expect(gateway.upstream.seen[0]?.url).toBe('/things/bulk.json');
    const one = await gateway.send('GET', '/things/1.json');
    expect(remainingOf(one)).toMatchObject({ single: 4 });
    expect(remainingOf(one)).not.toHaveProperty('bulks');
  });
});
