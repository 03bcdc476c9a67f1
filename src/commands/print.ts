import { relative } from 'node:path';
import { formatPlace, type Place } from '../config/problem.ts';
import { maskUrls } from '../config/reader/mask.ts';
import { printableJson } from '../domain/printable.ts';
import { type Line, lineText } from './terminal/line.ts';
import { standardError, standardOutput } from './terminal/output.ts';

/** Writes lines to standard output, without the credentials of the URLs in them. */
export function print(...lines: readonly Line[]): void {
  write(standardOutput(), lines, maskUrls);
}

/** As `print`, to standard error. */
export function printError(...lines: readonly Line[]): void {
  write(standardError(), lines, maskUrls);
}

/** As `print`, for any number of lines whose values have to stay exact, such as ids that look like URLs. */
export function printExactly(lines: readonly Line[]): void {
  write(standardOutput(), lines);
}

/** Writes a value as JSON, without the credentials of the URLs in it. */
export function printJson(value: unknown): void {
  standardOutput().write(`${maskUrls(jsonText(value, 2))}\n`);
}

/** As `printJson`, with exact values. @param indent of its lines; without it, the JSON is one line */
export function printJsonExactly(value: unknown, indent?: number): void {
  standardOutput().write(`${jsonText(value, indent)}\n`);
}

function jsonText(value: unknown, indent?: number): string {
  return printableJson(JSON.stringify(value, null, indent));
}

function write(stream: NodeJS.WriteStream, lines: readonly Line[], change?: (text: string) => string): void {
  stream.write(lines.map((line) => `${lineText(line, stream, change)}\n`).join(''));
}

/** A place for a message: relative to the working folder if it is below it. */
export function shownPlace(place: Place): string {
  const fromHere = relative(process.cwd(), place.file);
  const file = fromHere.startsWith('..') ? place.file : fromHere;
  return formatPlace({ ...place, file });
}

/** A value as one word of a POSIX shell, which the shell does not interpret. */
export function shellWord(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}
