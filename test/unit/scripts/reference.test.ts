import { readFileSync } from 'node:fs';
import { Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import { withTables } from '../../../scripts/reference.ts';
import { rowsOf } from '../../../scripts/rows.ts';
import { asNode } from '../../../src/config/reader/schema-node.ts';

describe('the reference', () => {
  test('in docs/configuration.md agrees with the schemas (npm run docs regenerates it)', () => {
    const document = readFileSync('docs/configuration.md', 'utf8');
    expect(withTables(document)).toBe(document);
  });

  test('changes nothing outside its markers', () => {
    const document = 'a\n<!-- limits:begin -->\nstale\n<!-- limits:end -->\n| b |\n';
    const made = withTables(document);
    expect(made).toMatch(
      /^a\n<!-- limits:begin -->\n\| Setting.*`windowSeconds`.*\n<!-- limits:end -->\n\| b \|\n$/s,
    );
    expect(made).not.toContain('stale');
    expect(withTables(made)).toBe(made);
  });

  test('lists the kinds of a union that have a setting', () => {
    const schema = Type.Object({
      s: Type.Union(
        [
          Type.Object({
            kind: Type.Literal('a', { description: 'A.' }),
            shared: Type.Boolean({ default: true }),
          }),
          Type.Object({
            kind: Type.Literal('b', { description: 'B.' }),
            shared: Type.Boolean({ default: true }),
            own: Type.String(),
          }),
        ],
        { default: { kind: 'a' } },
      ),
    });
    expect(
      rowsOf(asNode(schema)).map(({ path, kinds, fallback, variable }) => [path, kinds, fallback, variable]),
    ).toEqual([
      ['s.kind', undefined, 'a', 'WEIR_S_KIND'],
      ['s.shared', undefined, 'true', 'WEIR_S_SHARED'],
      ['s.own', ['b'], undefined, 'WEIR_S_OWN'],
    ]);
  });
});
