import { relative } from 'node:path';
import { formatPlace, type Place } from '../config/problem.ts';
import { maskUrls } from '../config/reader/mask.ts';

/** Writes a line to standard output, without the credentials of the URLs in it. */
export function print(text: string): void {
  process.stdout.write(`${maskUrls(text)}\n`);
}

/** As `print`, to standard error. */
export function printError(text: string): void {
  process.stderr.write(`${maskUrls(text)}\n`);
}

/** A place for a message: relative to the working folder if it is below it. */
export function shownPlace(place: Place): string {
  const fromHere = relative(process.cwd(), place.file);
  const file = fromHere.startsWith('..') ? place.file : fromHere;
  return formatPlace({ ...place, file });
}
