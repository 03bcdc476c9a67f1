import { expect, it } from 'vitest';
import { parseIdentities } from '../../../src/config/files/identities/parse-identities.ts';
import { parseLimits, parseOverrides } from '../../../src/config/files/limits/parse-limits.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { examine } from '../../../src/config/reader/parse-file.ts';
import { readYaml } from '../../../src/config/reader/yaml-text.ts';
import { settingsSchema } from '../../../src/config/settings/settings.ts';

const LAUGHS = Array.from({ length: 9 }, (_, n) => {
  const item = n === 0 ? 'x' : `*x${n - 1}`;
  return `x${n}: &x${n} [${Array.from({ length: 9 }, () => item).join()}]`;
}).join('\n');

it.each<[string, (text: string, file: string) => unknown]>([
  ['weir.yaml', (text, file) => examine(settingsSchema, text, file)],
  ['limits.yaml', parseLimits],
  ['overrides', parseOverrides],
  ['identities.yaml', parseIdentities],
])('aliases of %s that expand to much more than the text are one problem', (file, read) => {
  for (const text of [LAUGHS, 'accounts: &a { a: *a }']) {
    let caught: unknown;
    try {
      read(text, file);
    } catch (error) {
      caught = error;
    }
    if (!(caught instanceof ConfigError)) throw new Error(`${file} was read: ${String(caught)}`);
    expect(caught.problems).toEqual([{ source: file, path: '', message: expect.stringContaining('alias') }]);
  }
});

const CHARACTERS = Array.from({ length: 0x100 }, (_, code) => String.fromCharCode(code));

it.each([
  ['a list', (before: string) => `&a [b,${before}*a]`],
  ['the items of a list', (before: string) => `&a\n-${before}*a`],
  ['a mapping', (before: string) => `&a {"b":1,c:${before}*a}`],
  ['a mapping of JSON', (before: string) => `&a {"b"${before}*a}`],
  ['lines', (before: string) => `&a\nb:\n${before}*a`],
])('no alias in %s contains itself, whatever is written before it', (_, textAfter) => {
  const found = ['', ...CHARACTERS].filter((before) => {
    const yaml = readYaml(textAfter(before), 'x.yaml');
    if ('lineOf' in yaml) JSON.stringify(yaml.value);
    return 'message' in yaml && yaml.message.endsWith('an alias contains itself');
  });
  expect(found.length).toBeGreaterThan(0);
});

it('one alias for each of many owners is read', () => {
  const accounts = Array.from({ length: 20_000 }, (_, n) => `  acct_${n}: *large`).join('\n');
  const text = `accounts:\n  first: &large { account-read: 5000, account-write: { limit: 5, shadow: true } }\n${accounts}\n`;
  expect(parseOverrides(text, 'overrides.yaml').accounts.size).toBe(20_001);
});

it('the line of a value is found below a long key', () => {
  const key = 'k'.repeat(100_000);
  const text = `${key}:\n${'  - 1\n'.repeat(20_000)}  - last\n`;
  const yaml = readYaml(text, 'x.yaml');
  if (!('lineOf' in yaml)) throw new Error(yaml.message);
  expect(yaml.lineOf([key, '20000'])).toBe(20_002);
  expect(yaml.lineOf([key, '20000', 'none'])).toBe(20_002);
  expect(yaml.lineOf(['none'])).toBeUndefined();
});
