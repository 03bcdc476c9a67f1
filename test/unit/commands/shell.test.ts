import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { shellWord } from '../../../src/commands/print.ts';

it.each([
  "/x';touch$IFS/tmp/p;'",
  '$(id)`id`"\\',
  '',
  '-n',
  '~root',
  '#comment',
  'a b\tc\nd',
  '{a,b}*?[x]!',
  'http://127.0.0.1:8080/v3/a?b=c&d',
  "'",
])('a shell reads the word as it is: %j', (value) => {
  const read = execFileSync('sh', ['-c', `printf '<%s>' ${shellWord(value)}`], { encoding: 'utf8' });
  expect(read).toBe(`<${value}>`);
});
