import { describe, expect, test } from 'vitest';
import { expressionsIn, type FoundExpression } from './fixtures/expressions/find.ts';
import { slowParts } from './fixtures/expressions/judge.ts';

/** Expressions that are not shown to be linear: the file, the expression, and why it cannot stop a process. */
const EXCEPTIONS: readonly (readonly [file: string, text: string, reason: string])[] = [
  // Only the operator writes the text.
  [
    'src/config/files/limits/equal-entries.ts',
    `\`^( *)([A-Za-z][\\\\w.-]*|[0-9a-f]{8}-[\\\\w-]+):((?: +(?:\${WORD}|\${QUOTED}|\${FLOW}))?)(?: +\${COMMENT})? *$\``,
    'lines of the files of limits',
  ],
  [
    'src/config/files/limits/limits-files.ts',
    String.raw`/^[^.].*\.(ya?ml|json)$/`,
    'names of the files of limits',
  ],
  [
    'src/config/reader/environment.ts',
    String.raw`/_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)$/`,
    'names of environment variables',
  ],
  [
    'src/config/reader/unclosed.ts',
    String.raw`/(?<=^|\s)#.*|(?=["'{[])(?<=(?:^|[{[,:?-])[ \t]*)(?:"(?:[^"\\]|\\[\s\S])*"?|'(?:[^']|'')*'?|[{[])|[{}[\]]|[|>][+-]?\d?[+-]?[ \t]*$/gm`,
    'YAML files',
  ],
  ['src/config/reader/unclosed.ts', String.raw`/(?:^|[:?-])[ \t]*$/`, 'lines of YAML files'],
  ['src/config/reader/yaml-text.ts', String.raw`/^[^\S\n]*[^\s#]/m`, 'YAML files'],
  ['src/config/reader/yaml-text.ts', '/"[^"]*"|!<[^>]*>|(?<=: ).*/g', 'messages of the YAML parser'],
  ['src/config/settings/settings.ts', "'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'", 'a setting'],
  ['src/replay/input/text-formats.ts', '/,(?=[A-Za-z]+=)/', 'the option --map'],
  ['src/replay/input/text-formats.ts', String.raw`/^\s*([A-Za-z]+)=(.+?)\s*$/`, 'the option --map'],
  ['src/replay/input/text-formats.ts', String.raw`/\.(?:"([^"]+)"|([^."]+))/g`, 'the option --map'],
  // Takes linear time for the reason given, which the check does not see.
  [
    'src/replay/input/text-formats.ts',
    String.raw`/"((?:[^"\\]|\\.)*)"|(\S+)/g`,
    'only the last quote that starts a token can lack its end, because it would end an earlier one',
  ],
  [
    'src/config/reader/schema-check.ts',
    'pattern',
    'a pattern of a schema of ours, each of which is tested here',
  ],
  ['src/operations/validation/engine/patterns.ts', 'source', 'used only for patterns that cannot backtrack'],
  ['src/operations/validation/engine/patterns.ts', 'forUnicode(source)', 'is parsed, and never run'],
  ['src/operations/validation/engine/code-units.ts', 'property', 'matches one character'],
  [
    'src/operations/documents/read-rules.ts',
    `\`^\${parts.join('')}$\``,
    'a parameter ends at the first occurrence of the literal after it',
  ],
  [
    'platform/src/http/served-methods.ts',
    `\`^\${url.replaceAll('.', '\\\\.').replaceAll(/:\\w+/g, '[^/]+')}$\``,
    'a parameter ends at the next slash',
  ],
];

const found = expressionsIn(['src', 'platform/src']);

describe('regular expressions', () => {
  test('of both programs take linear time, with the listed exceptions', () => {
    const slow = found.filter(
      ({ source, flags }) => source === undefined || slowParts(source, flags).length > 0,
    );
    const isListed = (one: FoundExpression) =>
      EXCEPTIONS.some(([file, text]) => file === one.file && text === one.text);
    expect(slow.filter((one) => !isListed(one))).toEqual([]);
    expect(
      EXCEPTIONS.filter(([file, text]) => !slow.some((one) => file === one.file && text === one.text)),
    ).toEqual([]);
  });

  test('are found in literals, in calls and in schemas, also in scripts for browsers', () => {
    const files = new Set(found.map(({ file }) => file));
    expect(files).toContain('src/stages/normalise.ts');
    expect(files).toContain('src/domain/caller.ts');
    expect(files).toContain('src/gateway/decisions/api/question.ts');
    expect(files).toContain('src/console/browser/api.ts');
    expect(files).toContain('platform/src/deliveries/redact.ts');
  });

  test.each([
    [/(a+)+$/, 'an endless choice'],
    [/^(?:a|b|ab)*c/, 'a choice of alternatives'],
    [/^(?:(?:x?|z)z)*$/, 'an alternative that may be empty'],
    [/^(?:ab)*(?:ab)*$/, 'two neighbours of several characters'],
    [/^\s*=?\s*x/, 'two neighbours with something optional between them'],
    [/^(.*)\1$/, 'a backreference'],
    [/\s+$/, 'a search from each space'],
    [/[\w-]*token/i, 'a search from each letter'],
    [/<!--[\s\S]*?-->/, 'a search from each start of a comment'],
    [/!<[^>]*>/, 'a search from each tag'],
    [/^a[^;]*;/m, 'a search from each line'],
    [/(?<!b)a+$/, 'a search from each letter, except after another one'],
    [/(?=[\s\S]*x)y/, 'a lookahead without an end'],
  ])('%s is slow: %s', (expression) => {
    expect(slowParts(expression.source, expression.flags)).not.toEqual([]);
  });

  test.each([
    /^\s+/,
    /\s+/g,
    /(?<!a)a+$/,
    /\s+$/y,
    /"[^"]*"/g,
    /^(?:"(?:[^"\\]|\\.)*"|[^",]+)(?:,|$)/,
    /^a.*$/m,
  ])('%s is not', (expression) => {
    expect(slowParts(expression.source, expression.flags)).toEqual([]);
  });
});
