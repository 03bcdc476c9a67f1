import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withValuesTable } from '../../../scripts/chart-readme.ts';

test("the chart's README has every value of values.yaml (npm run docs writes it)", () => {
  const readme = readFileSync('helm/weir/README.md', 'utf8');
  expect(readme).toBe(withValuesTable(readme, readFileSync('helm/weir/values.yaml', 'utf8')));
  expect(readme).toContain('| `watch.enabled` | `true` |');
});
