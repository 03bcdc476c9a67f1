import { statSync } from 'node:fs';
import { RE2JS } from 're2js';
import { printable } from '../../domain/printable.ts';
import { CommandError } from '../../process/failure.ts';
import type { OperationFinder } from '../../replay/input/entry.ts';
import { type Format, lineReader } from '../../replay/input/formats.ts';
import { fileSource, type LogSource } from '../../replay/input/log-file.ts';
import { type Mapping, parseMapping } from '../../replay/input/text-formats.ts';

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
  if (files.filter((file) => file === '-').length > 1)
    throw new CommandError('- is standard input, which can be read only once: name it once.');
  return (files.length === 0 ? ['-'] : files).map(sourceOf);
}

function sourceOf(file: string): LogSource {
  if (file === '-') return { name: 'standard input', bytes: undefined, open: () => process.stdin };
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new CommandError(`There is no file ${file}.`);
  if (stats.isDirectory())
    throw new CommandError(`${file} is a folder: name the files in it, such as ${file}/*.`);
  return { ...fileSource(file, stats.isFile() ? stats.size : undefined), name: printable(file) };
}

/** How the log is read. */
export function formatOf(flags: FormatFlags, finder: OperationFinder | undefined) {
  const mapping = mappingOf(flags.map);
  const format = flags.format ?? (flags.map === undefined ? 'weir' : 'json');
  if (format === 'weir' && (flags.map ?? flags.accountPattern) !== undefined) {
    throw new CommandError(
      '--map and --account-pattern are for the logs of other gateways: name a --format.',
    );
  }
  const readLine = lineReader({
    format,
    mapping,
    accountPattern: patternOf(flags.accountPattern),
    finder,
  });
  if (typeof readLine === 'string') throw new CommandError(readLine);
  const isForeign = format !== 'weir';
  return {
    readLine,
    /** Whether its lines have a cost. */
    hasLoggedCosts: !isForeign || mapping.cost !== undefined,
    /** Whether another gateway wrote it, which may have any text as an Account. */
    isForeign,
  };
}

function mappingOf(text: string | undefined): Mapping {
  const mapping = text === undefined ? {} : parseMapping(text);
  if (typeof mapping === 'string') throw new CommandError(`--map: ${mapping}.`);
  return mapping;
}

/** Clients choose much of the text of a log, so the pattern runs in linear time, as RE2 runs it. */
function patternOf(text: string | undefined): RE2JS | undefined {
  if (text === undefined) return undefined;
  const pattern = compiled(text);
  if (pattern.groupCount() > 0) return pattern;
  throw new CommandError(
    `--account-pattern needs a group around the Account, such as tenant=(\\w+): ${text} has none.`,
  );
}

function compiled(text: string): RE2JS {
  try {
    return RE2JS.compile(text, RE2JS.LOOKBEHINDS);
  } catch (error) {
    throw new CommandError(`--account-pattern: ${(error as Error).message}.`);
  }
}

/** Why what was read says nothing about the log; undefined where it does. */
export function unreadProblem(read: {
  readonly lines: number;
  readonly unreadable: number;
  readonly uncharged: number;
  /** Those that are replayed, or left out as repetitions. */
  readonly requests: number;
}): string | undefined {
  const { lines, unreadable, uncharged, requests } = read;
  if (unreadable * 2 > lines)
    return `${unreadable} of ${lines} lines of the log could not be read: is --format right?`;
  return requests + uncharged > 0 ? undefined : 'The log has no request that could be replayed.';
}
