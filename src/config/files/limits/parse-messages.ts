/** What the gateway and its parser thread (parse-worker.ts) send each other. */
import { setImmediate } from 'node:timers/promises';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { Limits, OverrideMaps, Overrides } from '../../../domain/limits/limits.ts';
import { OVERRIDE_SECTIONS, type OverrideSection } from '../../../domain/limits/scopes.ts';
import { ConfigError, type Problem, problemsOf } from '../../problem.ts';
import { bySection, type Named, parseLimits, parseOverrides } from './parse-limits.ts';

/** One file of limits to parse, with its name for messages. For overrides, also what the limits file names. */
export type Job =
  | { readonly kind: 'limits'; readonly text: string; readonly file: string }
  | { readonly kind: 'overrides'; readonly text: string; readonly file: string; readonly named: Named };

/** To the thread, which posts `'sent'` when the whole result is on the port. */
export interface LimitsTask {
  readonly job: Job | { readonly kind: 'line'; readonly text: string; readonly path: readonly string[] };
  /** Receives the result. */
  readonly port: MessagePort;
}

/** The result for each kind of file. Only a limits file has defaults. */
export type Parsed = Limits | OverrideMaps;

/** Some of a file's overrides. The last message has the other content of the file, or its problems. */
type ParsedSlice =
  | { readonly section: OverrideSection; readonly entries: readonly (readonly [id: string, Overrides])[] }
  | { readonly rest: Omit<Limits, OverrideSection> | object }
  | { readonly problems: readonly Problem[] };

/** Overrides per message. Receiving one message takes about a millisecond. */
const SLICE = 250;

export function parseJob(job: Job): Parsed {
  const { text, file } = job;
  return job.kind === 'limits' ? parseLimits(text, file) : parseOverrides(text, file, job.named);
}

/** The thread's end: parses the file and sends its content in slices. */
export function sendParsed(job: Job, port: MessagePort): void {
  const send = (message: ParsedSlice) => port.postMessage(message);
  try {
    const { accounts, organizations, addresses, principals, ...rest } = parseJob(job);
    const maps: OverrideMaps = { accounts, organizations, addresses, principals };
    for (const section of OVERRIDE_SECTIONS) {
      const entries = [...maps[section]];
      for (let from = 0; from < entries.length; from += SLICE) {
        send({ section, entries: entries.slice(from, from + SLICE) });
      }
    }
    send({ rest });
  } catch (error) {
    send({ problems: problemsOf(error) });
  }
}

/**
 * The gateway's end: receives the slices, one message per turn of the event loop. A listener would get all of them in one turn and
 * block requests.
 */
export async function receiveParsed(port: MessagePort, file: string): Promise<Parsed> {
  const maps = bySection(() => new Map<string, Overrides>());
  for (;;) {
    const message = receiveMessageOnPort(port)?.message as ParsedSlice | undefined;
    if (message === undefined) throw new Error(`the thread that parses ${file} ended before it finished`);
    if ('problems' in message) throw new ConfigError(message.problems);
    if ('rest' in message) return { ...message.rest, ...maps };
    for (const [id, overrides] of message.entries) maps[message.section].set(id, overrides);
    await setImmediate();
  }
}
