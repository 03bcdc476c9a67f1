import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withScaleTables } from '../../../scripts/scale-tables.ts';

test('the tables of docs/scale.md follow from its inputs (npm run docs calculates them)', () => {
  const page = readFileSync('docs/scale.md', 'utf8');
  expect(page).toBe(withScaleTables(page));
});

test('a changed input changes the tables', () => {
  const page = readFileSync('docs/scale.md', 'utf8');
  const changed = page.replace(/^\| `gatewayUs` \| [\d.]+ \|/m, '| `gatewayUs` | 100 |');
  expect(withScaleTables(changed)).toContain('| forwarded requests/s and core | 10,000 | 5,000 |');
});
