import { pino } from 'pino';
import { maskUrls } from '../../config/reader/mask.ts';
import { printable } from '../../domain/printable.ts';
import type { Log } from '../../observe/log/log.ts';
import { TRAFFIC_REQUEST_ID } from './traffic.ts';

/** The members of a line that `describeRequest` shows. */
interface RequestLine {
  readonly requestId?: string;
  readonly method?: string;
  readonly path?: string;
  readonly status?: number;
  readonly cost?: number;
  readonly account?: string;
  readonly outcome?: string;
  readonly reason?: string;
  readonly bucket?: string;
  readonly totalMs?: number;
}

/**
 * The log as lines for a person, instead of JSON. The demo's own traffic is left out, which would push everything else off the
 * screen.
 *
 * @returns undefined where pino-pretty is not installed, such as in a release
 */
export async function openTerminalLog(
  level: string,
  output: { write(text: string): unknown } = process.stdout,
): Promise<Log | undefined> {
  const pinoPretty = await import('pino-pretty').catch(() => undefined);
  if (pinoPretty === undefined) return undefined;
  const { isColorSupported, prettyFactory } = pinoPretty;
  const look = { colorize: isColorSupported, translateTime: 'SYS:HH:MM:ss', ignore: 'pid,hostname' };
  const pretty = prettyFactory({ ...look, singleLine: true });
  const prettyRequest = prettyFactory({ ...look, hideObject: true, messageFormat: describeRequest });
  const lines = {
    write(line: string) {
      const entry = printableValues(JSON.parse(maskUrls(line))) as RequestLine & { readonly msg?: string };
      if (entry.requestId?.startsWith(TRAFFIC_REQUEST_ID)) return;
      output.write((entry.msg === 'request' ? prettyRequest : pretty)(entry));
    },
    flushSync() {},
  };
  return { log: pino({ level }, lines), lines };
}

/** A copy of an entry in which no text can end the line, move the cursor or change colours. Only stacks have lines. */
function printableValues(value: unknown, name = ''): unknown {
  if (typeof value === 'string')
    return name === 'stack' ? value.split('\n').map(printable).join('\n') : printable(value);
  if (Array.isArray(value)) return value.map((one) => printableValues(one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [printable(key), printableValues(one, key)]),
  );
}

function describeRequest(line: RequestLine): string {
  const { method, path = '', status, cost, account, outcome, reason, bucket, totalMs = 0 } = line;
  const points = cost === 1 ? '1 point' : `${cost} points`;
  const detail =
    outcome === 'admitted'
      ? `${points} of ${account}`
      : [reason, bucket, account].filter((part) => part !== undefined).join(', ');
  return `${method} ${path} ${status}${detail && `, ${detail}`} (${Math.round(totalMs)} ms)`;
}
