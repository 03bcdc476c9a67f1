import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DescriptorFiles } from '../../../../src/config/files/descriptors/descriptor-files.ts';
import { parseDescriptors } from '../../../../src/config/files/descriptors/parse-descriptors.ts';
import { ConfigError, formatProblem } from '../../../../src/config/problem.ts';
import { FileSource } from '../../../../src/config/reader/file-source.ts';
import { findRule } from '../../../../src/domain/limits/descriptors.ts';

/** The problems of a file, one line each. */
function problemsOf(read: () => unknown): readonly string[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(formatProblem);
  }
}

const parse = (text: string) => parseDescriptors(text, 'rules.yaml');
const rule = (text: string) => `domain: d\ndescriptors:\n  - key: a\n    ${text}\n`;

describe('a file of rules', () => {
  it.each([
    [
      rule('rate_limit: { unit: minutes, requests_per_unit: 1 }'),
      'rules.yaml:4: descriptors.0.rate_limit.unit: must be one of second, minute, hour, day, week, month, year, is "minutes": did you mean "minute"?',
    ],
    [
      rule('rate_limit: { requests_per_unit: 1 }'),
      'rules.yaml:4: descriptors.0.rate_limit.unit: is missing: expected one of second, minute, hour, day, week, month, year',
    ],
    [
      rule('rate_limit: { unit: minute }'),
      'rules.yaml:4: descriptors.0.rate_limit.requests_per_unit: is missing: expected a whole number, or unlimited: true',
    ],
    [
      rule('rate_limit: { unit: day, unlimited: true }'),
      'rules.yaml:4: descriptors.0.rate_limit.unit: cannot be combined with unlimited',
    ],
    [
      rule('rate_limit: { unit: day, requests_per_unit: 1, name: x, replaces: [{ name: x }] }'),
      'rules.yaml:4: descriptors.0.rate_limit.replaces.0: is the name of this limit itself',
    ],
    [
      rule('rate_limit: { unit: day, requests_per_unit: 4294967295 }'),
      'rules.yaml:4: descriptors.0.rate_limit.requests_per_unit: must be a whole number from 0 to 1999999999, is 4294967295',
    ],
    [rule('share_threshold: true'), 'rules.yaml:4: descriptors.0.share_threshold: needs a value with a "*"'],
    [
      rule('rate_limits: {}'),
      'rules.yaml:4: descriptors.0.rate_limits: unknown key "rate_limits": did you mean "rate_limit"?',
    ],
    ['descriptors: []\n', 'rules.yaml: domain: is missing: expected text that is not empty'],
    [
      'domain: d\ndescriptors: [{ key: a, value: b }, { key: a, value: b }]\n',
      'rules.yaml:2: descriptors.1: a_b is listed twice',
    ],
    [
      'domain: d\ndescriptors: [{ key: "" }]\n',
      'rules.yaml:2: descriptors.0.key: must be text that is not empty, is empty',
    ],
  ])('%# is refused with its line and path', (text, problem) => {
    expect(problemsOf(() => parse(text))).toEqual([problem]);
  });

  it('has a warning for metrics with values of requests', () => {
    const { warnings } = parse(rule('detailed_metric: true'));
    expect(warnings.map(formatProblem)).toEqual([
      expect.stringMatching(/^rules\.yaml:4: descriptors\.0\.detailed_metric: is ignored/),
    ]);
  });

  it('cannot be nested without end', () => {
    const deep = `${'{ key: a, descriptors: ['.repeat(30)}${'] }'.repeat(30)}`;
    expect(problemsOf(() => parse(`domain: d\ndescriptors: [${deep}]\n`))).toEqual([
      expect.stringContaining('unknown key "descriptors"'),
    ]);
  });
});

describe('a rule', () => {
  const { domain } = parse(`
domain: d
descriptors:
  - { key: a, value: x*y*z, rate_limit: { unit: second, requests_per_unit: 1 } }
  - { key: a, value: xyz, rate_limit: { unit: second, requests_per_unit: 2 } }
  - { key: a, value: 404, rate_limit: { unit: second, requests_per_unit: 3 } }
  - { key: a, rate_limit: { unit: second, requests_per_unit: 4 } }
  - { key: b, value: x, descriptors: [{ key: c, rate_limit: { unit: second, requests_per_unit: 5 } }] }
`);
  const limitOf = (...entries: [string, string][]) => {
    const found = findRule(
      domain.rules,
      entries.map(([key, value]) => ({ key, value })),
    )?.rule.limit;
    return typeof found === 'object' ? found.requestsPerUnit : found;
  };
  it.each<[[string, string][], number | undefined]>([
    [[['a', 'x1y2z']], 1],
    [[['a', 'xyyz']], 1],
    [[['a', 'xyz']], 2],
    [[['a', 'xz']], 4],
    [[['a', 'yz']], 4],
    [[['a', '404']], 3],
    [[['a', '']], 4],
    [[['b', 'x']], undefined],
    [
      [
        ['b', 'y'],
        ['c', '1'],
      ],
      undefined,
    ],
    [
      [
        ['b', 'x'],
        ['c', '1'],
      ],
      5,
    ],
    [
      [
        ['b', 'x'],
        ['c', '1'],
        ['d', '1'],
      ],
      undefined,
    ],
    [[['c', '1']], undefined],
  ])('for %j allows %j', (entries, limit) => {
    expect(limitOf(...entries)).toBe(limit);
  });
});

describe('several files', () => {
  it('have a domain each', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-rules-'));
    for (const name of ['a', 'b']) writeFileSync(join(folder, `${name}.yaml`), 'domain: d\n');
    const files = new DescriptorFiles([folder], new FileSource());
    await expect(files.load()).rejects.toThrow(
      `${folder}/b.yaml:1: domain: d is also the domain of ${folder}/a.yaml:1: write all rules of a domain into one file`,
    );
  });

  it('are the same rules until one of them changes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-rules-'));
    writeFileSync(join(folder, 'a.yaml'), 'domain: a\n');
    const files = new DescriptorFiles([folder], new FileSource());
    const first = await files.load();
    expect(await files.load()).toBe(first);
    writeFileSync(join(folder, 'b.yaml'), 'domain: b\n');
    expect([...(await files.load()).keys()]).toEqual(['a', 'b']);
  });
});
