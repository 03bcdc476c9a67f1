import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { valuesSchema } from '../../../scripts/values-schema.ts';

describe("the chart's values.schema.json", () => {
  test('is what the schemas of the gateway say (npm run docs makes it anew)', () => {
    expect(readFileSync('helm/weir/values.schema.json', 'utf8')).toBe(valuesSchema());
  });

  test('has no keyword that JSON Schema does not know', () => {
    expect(valuesSchema()).not.toMatch(/"(env|envSelects|expects|secret)": (true|")/);
  });
});
