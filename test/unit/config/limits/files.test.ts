import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkCosts } from '../../../../src/config/checks/costs.ts';
import { LimitsFiles } from '../../../../src/config/files/limits/limits-files.ts';
import { limitInForce } from '../../../fixtures/limits.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-limits-'));
  mkdirSync(join(folder, 'more'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
const main = () => join(folder, 'limits.yaml');
const more = () => join(folder, 'more');

describe('files of overrides', () => {
  test('a limit below a cost is reported with the file and the line that set it', async () => {
    write('limits.yaml', 'defaults:\n  account-read: 1\naccounts: { a: { account-read: 1 } }');
    const overrides = Array.from({ length: 25 }, (_, index) => `  b${index}: { account-read: 2 }\n`);
    write('more/1.yaml', `accounts:\n${overrides.join('')}`);
    const files = new LimitsFiles(main(), [more()]);
    const operations = [{ id: 'report', kind: 'read', cost: 3, access: 'caller' }] as const;
    const problems = checkCosts(operations, await files.load(), files);
    const source = join(more(), '1.yaml');
    expect(problems.slice(0, 4)).toMatchObject([
      { source: main(), line: 2, path: 'defaults.account-read' },
      { source: main(), line: 3, path: 'accounts.a.account-read' },
      { source, line: 2, path: 'accounts.b0.account-read' },
      { source, line: 3, path: 'accounts.b1.account-read' },
    ]);
    expect(problems).toHaveLength(27);
    expect(new Set(problems.slice(2).map((one) => one.source))).toEqual(new Set([source]));
  });

  test('add to the limits file, from single files and from every YAML and JSON file of a folder', async () => {
    write(
      'limits.yaml',
      'windowSeconds: 2\ndefaults: { account-read: 7 }\naccounts: { a: { account-read: 1 } }',
    );
    write('single.yaml', 'accounts: { b: { account-read: 2 } }');
    write('more/1.yml', 'accounts: { c: { account-read: 3 } }');
    write('more/2.json', '{"organizations": {"o": {"organization-read": "none"}}}');
    write('more/notes.txt', 'not: [read');
    write('more/..hidden.yaml', 'not: [read');
    const limits = await new LimitsFiles(main(), [join(folder, 'single.yaml'), more()]).load();
    const accountRead = (id: string) => limitInForce(limits, 'account-read', id, 0).limit;
    expect(['a', 'b', 'c', 'd'].map(accountRead)).toEqual([1, 2, 3, 7]);
    expect(limitInForce(limits, 'organization-read', 'o', 0).limit).toBeUndefined();
    expect(limits.windowSeconds).toBe(2);
  });

  test('set no defaults', async () => {
    write('limits.yaml', '');
    write('more/1.yaml', 'windowSeconds: 2');
    await expect(new LimitsFiles(main(), [more()]).load()).rejects.toThrow(
      `${join(more(), '1.yaml')}:1: windowSeconds: unknown key`,
    );
  });

  test('cannot set the same Account twice', async () => {
    write('limits.yaml', 'accounts: { a: { account-read: 1 } }');
    write('more/1.yaml', 'accounts: { b: { account-read: 1 } }');
    write('more/2.yaml', 'accounts: { a: { account-read: 2 }, b: { account-read: 2 } }');
    const second = join(more(), '2.yaml');
    await expect(new LimitsFiles(main(), [more()]).load()).rejects.toThrow(
      `${second}: accounts.a: is already set in ${main()}: keep one of them\n${second}: accounts.b: is already set in ${join(more(), '1.yaml')}`,
    );
  });

  test('the problems of all files are reported together', async () => {
    write('limits.yaml', 'windowSeconds: 0');
    write('more/1.yaml', 'acounts: {}');
    await expect(new LimitsFiles(main(), [more(), join(folder, 'gone.yaml')]).load()).rejects.toThrow(
      /windowSeconds: .*\n.*did you mean "accounts"\?\n.*gone\.yaml: does not exist/,
    );
  });

  test('are read again by a reload: changed, added and removed ones', async () => {
    write('limits.yaml', 'accounts: { a: { account-read: 1 } }');
    write('more/1.yaml', 'accounts: { b: { account-read: 2 } }');
    const files = new LimitsFiles(main(), [more()]);
    await files.load();
    rmSync(join(more(), '1.yaml'));
    write('more/2.yaml', 'accounts: { a: { account-read: 9 } }');
    write('limits.yaml', '{}');
    const limits = await files.load();
    expect(files.files()).toEqual([main(), join(more(), '2.yaml')]);
    expect([...limits.accounts.keys()]).toEqual(['a']);
    expect(limitInForce(limits, 'account-read', 'a', 0).limit).toBe(9);
  });

  test.each(['', ' \n', '# nothing\n'])('that are emptied are refused by a reload: %j', async (text) => {
    write('limits.yaml', 'defaults: { account-read: 7 }');
    write('more/1.yaml', 'accounts: { b: { account-read: 2 } }');
    const files = new LimitsFiles(main(), [more()]);
    const limits = await files.load();
    const isEmpty = 'is empty: the last content stays in force; write {} to remove all of it';
    write('limits.yaml', text);
    await expect(files.load()).rejects.toThrow(`${main()}: ${isEmpty}`);
    await expect(files.load()).rejects.toThrow(isEmpty);
    write('limits.yaml', 'defaults: { account-read: 7 }');
    write('more/1.yaml', text);
    await expect(files.load()).rejects.toThrow(`${join(more(), '1.yaml')}: ${isEmpty}`);
    write('more/1.yaml', 'accounts: { b: { account-read: 2 } }');
    expect(await files.load()).toEqual(limits);
    write('limits.yaml', '{}');
    write('more/1.yaml', '{}');
    const defaults = await files.load();
    expect(limitInForce(defaults, 'account-read', 'b', 0).limit).toBe(500);
  });

  test('may be empty at the start, and when they are added', async () => {
    write('limits.yaml', '');
    const files = new LimitsFiles(main(), [more()]);
    await files.load();
    expect(files.isBlank).toBe(true);
    write('more/1.yaml', '');
    await files.load();
    write('limits.yaml', '# nothing yet');
    await files.load();
    write('limits.yaml', '{}');
    await files.load();
    expect(files.isBlank).toBe(false);
  });

  test('have a version that depends only on their content', async () => {
    write('limits.yaml', 'windowSeconds: 2');
    write('more/1.yaml', 'accounts: { b: { account-read: 2 } }');
    const files = new LimitsFiles(main(), [more()]);
    await files.load();
    const first = files.version;
    expect(first).toMatch(/^[0-9a-f]{12}$/);
    write('copy.yaml', 'windowSeconds: 2');
    const copy = new LimitsFiles(join(folder, 'copy.yaml'), [more()]);
    await copy.load();
    expect(copy.version).toBe(first);
    write('more/1.yaml', 'accounts: { b: { account-read: 3 } }');
    await files.load();
    expect(files.version).not.toBe(first);
    write('more/1.yaml', 'accounts: { b: { account-read: many } }');
    const second = files.version;
    await expect(files.load()).rejects.toThrow();
    expect(files.version).toBe(second);
  });

  test('that were loaded but not taken name no line of the limits in force', async () => {
    const placeOf = (source: 'default' | 'override') =>
      files.writtenAt({ source, name: 'account-read', owner: 'b', plan: undefined });
    write('limits.yaml', 'defaults:\n  account-read: 7');
    write('more/1.yaml', 'accounts:\n  b: { account-read: 8 }');
    const files = new LimitsFiles(main(), [more()]);
    await files.load();
    expect([await placeOf('default'), await placeOf('override')]).toEqual([
      `${main()}:2`,
      `${join(more(), '1.yaml')}:2`,
    ]);
    write('limits.yaml', '# lower\n\ndefaults:\n  account-read: 1');
    rmSync(join(more(), '1.yaml'));
    write('more/2.yaml', 'accounts:\n\n  b: { account-read: 2 }');
    const refused = await files.load();
    expect([await placeOf('default'), await placeOf('override')]).toEqual([main(), join(more(), '1.yaml')]);
    expect(await files.load()).toBe(refused);
    files.take(refused);
    expect([await placeOf('default'), await placeOf('override')]).toEqual([
      `${main()}:4`,
      `${join(more(), '2.yaml')}:3`,
    ]);
  });

  test('that were changed and refused name no line of the limits in force, and hide no conflict with them', async () => {
    write('limits.yaml', 'defaults:\n  account-read: 3');
    const files = new LimitsFiles(main(), []);
    const inForce = await files.load();
    const operations = [{ id: 'report', kind: 'read', cost: 5, access: 'caller' }] as const;
    const problems = (limits = inForce) => checkCosts(operations, limits, files.placesOf(limits));
    const path = 'defaults.account-read';
    expect(problems()).toMatchObject([{ source: main(), line: 2, path }]);
    write('limits.yaml', 'defaults:\n  account-read: [3');
    await expect(files.load()).rejects.toThrow();
    expect(problems()).toMatchObject([{ source: main(), line: undefined, path }]);
    write('limits.yaml', '# lower\n\ndefaults:\n  account-read: 2');
    const refused = await files.load();
    expect(problems()).toMatchObject([{ source: main(), line: undefined, path }]);
    expect(problems(refused)).toMatchObject([{ source: main(), line: 4, path }]);
    rmSync(main());
    expect(problems()).toMatchObject([{ source: main(), line: undefined, path }]);
  });

  test('that have not changed return the same limits object', async () => {
    write('limits.yaml', '');
    write('more/1.yaml', 'accounts: { b: { account-read: 2 } }');
    const files = new LimitsFiles(main(), [more()]);
    const limits = await files.load();
    expect(await files.load()).toBe(limits);
    write('more/1.yaml', 'accounts: { b: { account-read: 3 } }');
    expect(await files.load()).not.toBe(limits);
  });
});
