/** Parses a large file of limits in a thread of its own, so that a reload does not hold up requests. */
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import {
  isMainThread,
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  Worker,
  workerData,
} from 'node:worker_threads';
import { OVERRIDE_SECTIONS, type OverrideSection } from '../../domain/buckets.ts';
import type { Limits, OverrideMaps, Overrides } from '../../domain/limits.ts';
import { ConfigError, type Problem } from '../problem.ts';
import { parseLimits, parseOverrides } from './parse.ts';

/** One file of limits to parse. */
export interface Job {
  readonly kind: 'limits' | 'overrides';
  readonly text: string;
  /** Its name, for messages. */
  readonly file: string;
}

/** What a file of each kind gives; only the first has defaults. */
export type Parsed = Limits | OverrideMaps;

interface ThreadData {
  readonly job: Job;
  readonly port: MessagePort;
}

/** A slice of a file's overrides; the last message is all else that the file holds, or why it cannot be used. */
type Message =
  | { readonly section: OverrideSection; readonly entries: readonly (readonly [id: string, Overrides])[] }
  | { readonly rest: Omit<Limits, OverrideSection> | object }
  | { readonly problems: readonly Problem[] };

/** A text up to this length is parsed within a few milliseconds, less than a thread takes to start. */
const SMALL_CHARACTERS = 32_768;

/** Node 20 runs only built files in a thread. */
const IS_BUILT = import.meta.url.endsWith('.js');

/** Bounds what a reload may add to a container's memory; 1 MiB of text takes a tenth of it. */
const MOST_HEAP_MB = 512;

/** Overrides per message; receiving one takes about a millisecond. */
const SLICE = 250;

/** Parses a file. Rejects with a ConfigError that carries every problem. */
export async function parseFile(job: Job): Promise<Parsed> {
  if (!IS_BUILT || job.text.length <= SMALL_CHARACTERS) return parse(job);
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { job, port: port2 } satisfies ThreadData,
    transferList: [port2],
    resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MB },
  });
  try {
    await once(worker, 'exit');
    return await receiveParsed(port1, job.file);
  } finally {
    port1.close();
  }
}

function parse({ kind, text, file }: Job): Parsed {
  return kind === 'limits' ? parseLimits(text, file) : parseOverrides(text, file);
}

/** The thread's end: parses the file and sends what it holds in slices. */
export function sendParsed(job: Job, port: Pick<MessagePort, 'postMessage'>): void {
  const send = (message: Message) => port.postMessage(message);
  try {
    const { accounts, organizations, ...rest } = parse(job);
    const maps: OverrideMaps = { accounts, organizations };
    for (const section of OVERRIDE_SECTIONS) {
      const entries = [...maps[section]];
      for (let from = 0; from < entries.length; from += SLICE) {
        send({ section, entries: entries.slice(from, from + SLICE) });
      }
    }
    send({ rest });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    send({ problems: error.problems });
  }
}

/** The other end. Takes one message a turn: a listener would be given all of them at once, and requests would wait. */
export async function receiveParsed(port: MessagePort, file: string): Promise<Parsed> {
  const maps = { accounts: new Map<string, Overrides>(), organizations: new Map<string, Overrides>() };
  for (;;) {
    const message = receiveMessageOnPort(port)?.message as Message | undefined;
    if (message === undefined) throw new Error(`the thread that parses ${file} ended before it was done`);
    if ('problems' in message) throw new ConfigError(message.problems);
    if ('rest' in message) return { ...message.rest, ...maps };
    for (const [id, overrides] of message.entries) maps[message.section].set(id, overrides);
    await setImmediate();
  }
}

function isThreadData(data: unknown): data is ThreadData {
  return typeof data === 'object' && data !== null && 'job' in data && 'port' in data;
}

if (!isMainThread && isThreadData(workerData)) sendParsed(workerData.job, workerData.port);
