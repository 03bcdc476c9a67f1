import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { reviewCosts } from '../../src/commands/costs/review.ts';
import { formatPlace } from '../../src/config/problem.ts';
import { FieldErrors } from '../../src/domain/field-errors.ts';
import type { ListedOperation } from '../../src/operations/listed-operation.ts';
import { checkPath } from '../../src/operations/validation/path-and-headers.ts';
import { checkQuery } from '../../src/operations/validation/query.ts';
import { type ApiFolder, apiFolder } from '../fixtures/api-files.ts';

/** One operation of each document gets a price, as its owner would write it. */
const DOCUMENTS = [
  {
    name: 'github',
    count: 401,
    priced: 'security-advisories/list-global-advisories',
    path: '/advisories',
    valid: ['?per_page=30&type=malware&cwes=79,89&cwes=22', '?affects=a&affects=b'],
    invalid: { '?per_pages=30&type=other&is_withdrawn=maybe': ['per_pages', 'type', 'is_withdrawn'] },
  },
  {
    name: 'digitalocean',
    count: 400,
    priced: 'droplets_list',
    path: '/v2/droplets',
    valid: ['?per_page=200&page=1', '?tag_name=env:prod'],
    invalid: { '?per_page=201&page=0&limit=5': ['per_page', 'page', 'limit'] },
  },
  {
    name: 'discord',
    count: 242,
    priced: 'list_guild_audit_log_entries',
    path: '/api/v10/guilds/81384788765712384/audit-logs',
    valid: ['?limit=100&before=81384788765712384', '?action_type=1'],
    invalid: { '?limit=0&before=x&foo=1': ['limit', 'before', 'foo'] },
  },
] as const;

const PROFILE = {
  trailingSlash: 'refuse',
  duplicateSlashes: 'refuse',
  matrixParameters: 'refuse',
  asciiForms: 'refuse',
  case: 'insensitive',
} as const;

describe.each(DOCUMENTS)('the document of $name', ({ name, count, priced, path, valid, invalid }) => {
  let folder: ApiFolder;
  let operations: readonly ListedOperation[];
  beforeAll(async () => {
    const text = await readFile(new URL(`documents/${name}.json`, import.meta.url), 'utf8');
    const id = `"operationId":"${priced}"`;
    folder = await apiFolder({ 'openapi.json': text.replace(id, `"x-weir":\n{"cost":3},${id}`) });
    operations = await folder.load('{ openapi: openapi.json }');
  });
  afterAll(() => folder.remove());

  const found = () => {
    const operation = operations.find(({ id }) => id === priced);
    if (operation?.rules === undefined) throw new Error(`${priced} has no rules`);
    return { ...operation, rules: operation.rules };
  };
  const refused = (search: string) => {
    const errors = new FieldErrors();
    checkPath(found().rules.path, path, errors);
    checkQuery(found().rules.query, search, errors);
    return errors.list.map(({ field }) => field);
  };

  test('loads completely, and every operation is matched by its own path', () => {
    expect(operations).toHaveLength(count);
    const shadowed = [...reviewCosts(operations, PROFILE)].filter(([, remarks]) =>
      remarks.some(({ kind }) => kind === 'shadowed'),
    );
    expect(shadowed).toEqual([]);
  });

  test('has the cost in the document, with its line', async () => {
    const text = await readFile(`${folder.path}/openapi.json`, 'utf8');
    const line = text.split('\n').findIndex((one) => one.startsWith('{"cost":3}')) + 1;
    const { cost, costWrittenAt } = found();
    expect(cost).toBe(3);
    expect(costWrittenAt && formatPlace(costWrittenAt)).toBe(`${folder.path}/openapi.json:${line}`);
    expect(operations.filter((one) => one.cost > 1)).toHaveLength(1);
  });

  test('validates what it declares', () => {
    for (const search of ['', ...valid]) expect([search, refused(search)]).toEqual([search, []]);
    for (const [search, fields] of Object.entries(invalid)) {
      expect([...refused(search)].sort()).toEqual([...fields].sort());
    }
  });
});
