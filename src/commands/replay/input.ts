import { statSync } from 'node:fs';
import type { PriceOf, ReadLine } from '../../replay/input/entry.ts';
import { type Format, lineReader } from '../../replay/input/formats.ts';
import { fileSource, type LogSource } from '../../replay/input/log-file.ts';
import { type Mapping, parseMapping } from '../../replay/input/mapping.ts';
import { CommandError } from '../failure.ts';

/** The format of the lines of a log. */
export interface FormatFlags {
  readonly format?: Format;
  readonly map?: string;
  readonly accountPattern?: string;
}

/** The files of a log. Default: standard input. */
export function sourcesOf(files: readonly string[]): readonly LogSource[] {
  if (files.length === 0 && process.stdin.isTTY) {
    throw new CommandError('Name the files of an access log, or pipe one into this command.');
  }
  return (files.length === 0 ? ['-'] : files).map(sourceOf);
}

function sourceOf(file: string): LogSource {
  if (file === '-') return { name: 'standard input', bytes: undefined, open: () => process.stdin };
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new CommandError(`There is no file ${file}.`);
  if (stats.isDirectory())
    throw new CommandError(`${file} is a folder: name the files in it, such as ${file}/*.`);
  return fileSource(file, stats.isFile() ? stats.size : undefined);
}

/** The reader of the log's lines, and whether the lines have a cost. */
export function formatOf(
  flags: FormatFlags,
  priceOf: PriceOf | undefined,
): { readonly readLine: ReadLine; readonly hasLoggedCosts: boolean } {
  const mapping = mappingOf(flags.map);
  const format = flags.format ?? (flags.map === undefined ? 'weir' : 'json');
  if (format === 'weir' && (flags.map ?? flags.accountPattern) !== undefined) {
    throw new CommandError(
      '--map and --account-pattern are for the logs of other gateways: name a --format.',
    );
  }
  const readLine = lineReader({ format, mapping, accountPattern: patternOf(flags.accountPattern), priceOf });
  if (typeof readLine === 'string') throw new CommandError(readLine);
  return { readLine, hasLoggedCosts: format === 'weir' || mapping.cost !== undefined };
}

function mappingOf(text: string | undefined): Mapping {
  const mapping = text === undefined ? {} : parseMapping(text);
  if (typeof mapping === 'string') throw new CommandError(`--map: ${mapping}.`);
  return mapping;
}

function patternOf(text: string | undefined): RegExp | undefined {
  if (text === undefined) return undefined;
  try {
    return new RegExp(text);
  } catch (error) {
    throw new CommandError(`--account-pattern: ${(error as Error).message}.`);
  }
}
