import { maskUrls } from '../config/reader/mask.ts';

/** Writes a line to standard output, without the credentials of the URLs in it. */
export function print(text: string): void {
  process.stdout.write(`${maskUrls(text)}\n`);
}

/** As `print`, to standard error. */
export function printError(text: string): void {
  process.stderr.write(`${maskUrls(text)}\n`);
}
