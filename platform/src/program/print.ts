import { styleText } from 'node:util';

/** Exit code of a program that a closed pipe ended, as in a shell. */
const BROKEN_PIPE = 141;

/** Characters that a terminal would obey or hide, such as control characters and marks of bidirectional text. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

process.stderr.on('error', () => {});
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  process.exit(code === 'EPIPE' ? BROKEN_PIPE : 1);
});

/** Writes lines to standard output. Values cannot break a line, and credentials in URLs are masked. */
export function print(...lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${printable(line)}\n`).join(''));
}

/** Like `print`, but to standard error, and in red on a terminal that has colours. */
export function printError(...lines: readonly string[]): void {
  const { stderr } = process;
  const hasColours = stderr.isTTY && stderr.hasColors();
  const styled = (line: string) => (hasColours ? styleText('red', line, { validateStream: false }) : line);
  stderr.write(lines.map((line) => `${styled(printable(line))}\n`).join(''));
}

/** A text as one line that is safe on a terminal, without the credentials of URLs. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped).replace(/[^\s"'<>]+/g, masked);
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** Everything before the last `@` of a URL counts as credentials, because a password may not be percent-encoded. */
function masked(word: string): string {
  const start = word.indexOf('://');
  const end = word.lastIndexOf('@');
  return start === -1 || end < start ? word : `${word.slice(0, start)}://***@${word.slice(end + 1)}`;
}
