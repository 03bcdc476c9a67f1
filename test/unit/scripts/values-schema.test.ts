import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { valuesSchema } from '../../../scripts/values-schema.ts';

describe("the chart's values.schema.json", () => {
  test('matches the schemas of the gateway (npm run docs regenerates it)', () => {
    expect(readFileSync('helm/weir/values.schema.json', 'utf8')).toBe(valuesSchema());
  });

  test('has only JSON Schema keywords', () => {
    expect(valuesSchema()).not.toMatch(/"(env|envSelects|expects|secret)": (true|")/);
  });
});
