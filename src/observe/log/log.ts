import { destination, type Logger, pino } from 'pino';
import { maskUrls } from '../../config/reader/mask.ts';
import { printableJson } from '../../domain/printable.ts';
import type { LineOutput } from './access-log.ts';
import { BatchedOutput } from './batched-output.ts';

export interface Log {
  readonly log: Logger;
  /** Takes further lines, in order with those of `log`. */
  readonly lines: LineOutput;
}

let standardOutput: BatchedOutput | undefined;

/** The log on standard output, one JSON object a line; no password of a URL is written. */
export function openLog(level: string): Log {
  const output = openStandardOutput();
  // What the access log writes is printable already.
  const log = pino({ level }, { write: (line: string) => output.write(printableJson(line)) });
  return { log, lines: output };
}

/** One output for the process. It is flushed when the process exits. */
function openStandardOutput(): BatchedOutput {
  if (standardOutput === undefined) {
    // Synchronous, so that a reader that does not keep up slows the gateway down, and nothing is left when the process exits.
    const file = destination({ dest: 1, sync: true });
    const output = new BatchedOutput({ write: (lines) => void file.write(masked(lines)) });
    process.once('exit', () => output.flushSync());
    standardOutput = output;
  }
  return standardOutput;
}

/** Many lines are looked through at once: hardly any has an `@`. */
function masked(lines: string): string {
  return lines.includes('@') ? lines.split('\n').map(maskUrls).join('\n') : lines;
}
