import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseIdentities } from '../../../src/config/files/identities/parse-identities.ts';
import { LimitsFiles } from '../../../src/config/files/limits/limits-files.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { ParsedFile } from '../../../src/config/reader/file-source.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-config-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('loading', () => {
  test('files are found from the folder of weir.yaml, absolute ones as they are', () => {
    const path = join(folder, 'weir.yaml');
    writeFileSync(path, 'limits: { file: sub/l.yaml }\noperations: { openapi: /abs/o.yaml }\n');
    const settings = loadSettings(path, { WEIR_IDENTITY_FILE: 'i.yaml' });
    expect(settings.limits.file).toBe(join(folder, 'sub/l.yaml'));
    expect(settings.operations.openapi).toBe('/abs/o.yaml');
    expect(settings.identity).toEqual({ kind: 'static', file: join(folder, 'i.yaml') });
  });

  test('a missing file is one clear sentence that names it', async () => {
    const path = join(folder, 'no.yaml');
    expect(() => loadSettings(path, {})).toThrow(
      new ConfigError([
        {
          source: path,
          path: '',
          message: 'does not exist',
          hint: 'weir init writes one; --config names another file',
        },
      ]),
    );
    const limits = new LimitsFiles(path, []);
    await expect(limits.load()).rejects.toThrow(
      `${path}: does not exist: the limits section of the settings refers to it`,
    );
    mkdirSync(path);
    await expect(limits.load()).rejects.toThrow('is a folder, not a file');
  });

  test('a file of identities that is emptied is refused by a reload, and may have nothing', async () => {
    const path = join(folder, 'identities.yaml');
    const file = new ParsedFile(path, parseIdentities, 'a hint');
    const write = (text: string) => writeFileSync(path, text);
    write('accounts: { acct_1: {} }\n');
    const identities = await file.load();
    for (const text of ['', ' \n# nothing\n']) {
      write(text);
      await expect(file.load()).rejects.toThrow(`${path}: is empty: the last content stays in force`);
    }
    write('accounts: { acct_1: {} }\n');
    expect(await file.load()).toBe(identities);
    write('{}');
    expect((await file.load()).accounts.size).toBe(0);
    const empty = new ParsedFile(path, parseIdentities, 'a hint');
    write('');
    expect((await empty.load()).accounts.size).toBe(0);
    write('# none yet');
    expect((await empty.load()).accounts.size).toBe(0);
  });

  test('syntactic and semantic problems both have file and line', async () => {
    const path = join(folder, 'l.yaml');
    writeFileSync(path, 'accounts:\n  a: { account-read: 5, until: "2026-02-30" }\n');
    await expect(new LimitsFiles(path, []).load()).rejects.toThrow(
      `${path}:2: accounts.a.until: "2026-02-30" is not a calendar date`,
    );
    writeFileSync(path, 'accounts:\n  a: { account-read: many }\n');
    await expect(new LimitsFiles(path, []).load()).rejects.toThrow(
      `${path}:2: accounts.a.account-read: must be a whole number`,
    );
  });
});
