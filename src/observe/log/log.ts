import { writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { destination, type Logger, pino } from 'pino';
import { maskUrls } from '../../config/reader/mask.ts';
import { printableJson } from '../../domain/printable.ts';
import type { LineOutput } from './access-log.ts';
import { quietly } from './process-output.ts';

export interface Log {
  readonly log: Logger;
  /** Takes further lines, and keeps them in order with the lines of `log`. */
  readonly lines: LineOutput;
}

let standardOutput: BatchedOutput | undefined;

/**
 * The log on standard output or another output, one JSON object a line; no password of a URL is written.
 *
 * @param fields members of every line
 */
export function openLog(
  level: string,
  output: LineOutput = openStandardOutput(),
  fields: Readonly<Record<string, string>> = {},
): Log {
  const base = { pid: process.pid, hostname: hostname(), ...fields };
  // What the access log writes is printable already.
  const log = pino({ level, base }, { write: (line: string) => output.write(printableJson(line)) });
  return { log, lines: output };
}

/** One output for the process. It is flushed when the process exits. */
function openStandardOutput(): BatchedOutput {
  standardOutput ??= openOutput(1);
  return standardOutput;
}

/** Text that waits for room on a full disk; what is written beyond is lost. */
const MOST_WAITING_LENGTH = 16_777_216;

/**
 * Writes to an open file, until the process exits. A disk that is full, or a reader that has gone, ends no gateway.
 *
 * @param warn gets a sentence once a minute while the file cannot be written
 */
export function openOutput(descriptor: number, warn = writeToStandardError): BatchedOutput {
  // Synchronous, so that a reader that does not keep up slows the gateway down, and nothing is left when the process exits.
  const file = destination({ dest: descriptor, sync: true, maxLength: MOST_WAITING_LENGTH });
  const isNew = quietly(() => performance.now());
  file.on('error', ({ code = 'error' }: NodeJS.ErrnoException) => {
    if (isNew(code)) warn(`The log cannot be written (${code}). Weir serves on, and lines may be lost.\n`);
  });
  const output = new BatchedOutput({ write: (lines) => void file.write(masked(lines)) });
  process.once('exit', () => output.flushSync());
  return output;
}

/** If this fails too, the problem cannot be reported anywhere. */
function writeToStandardError(text: string): void {
  try {
    writeSync(2, text);
  } catch {}
}

/** Many lines are looked through at once: hardly any has an `@`. */
function masked(lines: string): string {
  return lines.includes('@') ? lines.split('\n').map(maskUrls).join('\n') : lines;
}

/** How long a line may wait for others. */
const WAIT_MS = 5;

/** Longer text is written at once. */
const MAX_LENGTH = 65_536;

/** Writes all lines of a few milliseconds at once, because a write costs more than formatting many lines. */
export class BatchedOutput implements LineOutput {
  readonly #output: LineOutput;
  #text = '';
  #isScheduled = false;

  constructor(output: LineOutput) {
    this.#output = output;
  }

  write(line: string): void {
    this.#text += line;
    if (this.#text.length >= MAX_LENGTH) this.flushSync();
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setTimeout(this.#onTimeout, WAIT_MS);
  }

  /** Writes pending lines now. pino calls it before it reports a fatal error. */
  flushSync(): void {
    const text = this.#text;
    if (text === '') return;
    this.#text = '';
    this.#output.write(text);
  }

  readonly #onTimeout = (): void => {
    this.#isScheduled = false;
    this.flushSync();
  };
}
