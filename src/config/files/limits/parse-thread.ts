/** Parses large limits files in a worker thread so that a reload does not delay requests. */
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import {
  isMainThread,
  MessageChannel,
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  Worker,
  workerData,
} from 'node:worker_threads';
import { OVERRIDE_SECTIONS, type OverrideSection } from '../../../domain/buckets.ts';
import type { Limits, OverrideMaps, Overrides } from '../../../domain/limits.ts';
import { ConfigError, type Problem } from '../../problem.ts';
import { lineOfPath } from '../../reader/yaml-text.ts';
import { parseLimits, parseOverrides } from './parse.ts';

/** One file of limits to parse. */
export interface Job {
  readonly kind: 'limits' | 'overrides';
  readonly text: string;
  /** File name, for messages. */
  readonly file: string;
}

/** A search for the line of a setting. */
interface LineJob {
  readonly kind: 'line';
  readonly text: string;
  readonly file: string;
  readonly path: readonly string[];
}

/** The result for each kind of file. Only a limits file has defaults. */
export type Parsed = Limits | OverrideMaps;

interface Task {
  readonly job: Job | LineJob;
  /** Receives the result. */
  readonly port: MessagePort;
}

/** A slice of a file's overrides. The last message has the other content of the file, or its problems. */
type Message =
  | { readonly section: OverrideSection; readonly entries: readonly (readonly [id: string, Overrides])[] }
  | { readonly rest: Omit<Limits, OverrideSection> | object }
  | { readonly problems: readonly Problem[] };

/** A text of this length or less is parsed in a few milliseconds, which is less than a thread takes to start. */
export const SMALL_CHARACTERS = 32_768;

/** Node 20 runs only compiled files in a worker thread. */
const IS_BUILT = import.meta.url.endsWith('.js');

/** Marks the thread that this module starts. */
const PARSER = 'limits parser';

/**
 * Limits the memory that a reload can add to the container. 1 MiB of text needs a tenth of it. The small young generation
 * makes the idle thread 20 MB smaller.
 */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 4 };

/** Overrides per message. Receiving one message takes about a millisecond. */
const SLICE = 250;

/** Parses a file. Rejects with a ConfigError that has every problem. */
export async function parseFile(job: Job): Promise<Parsed> {
  if (!IS_BUILT || job.text.length <= SMALL_CHARACTERS) return parse(job);
  return thread.run(job, (port) => receiveParsed(port, job.file));
}

/** The line of a setting in a valid file, or of its nearest parent. A large file does not delay requests. */
export async function findLine(
  text: string,
  file: string,
  path: readonly string[],
): Promise<number | undefined> {
  if (!IS_BUILT || text.length <= SMALL_CHARACTERS) return lineOfPath(text, path);
  return thread.run({ kind: 'line', text, file, path }, (port) => {
    const message = receiveMessageOnPort(port)?.message as { readonly line: number | undefined } | undefined;
    return Promise.resolve(message?.line);
  });
}

/**
 * A worker thread that starts with the first file and is then reused, because starting a thread and compiling its code
 * takes four times as much CPU as parsing 500 KB.
 */
class ParseThread {
  #worker: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** Does one job at a time. Rejects if the thread fails; the next job gets a new thread. */
  run<T>(job: Task['job'], receive: (port: MessagePort) => Promise<T>): Promise<T> {
    const result = this.#last.then(() => this.#run(job, receive));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #run<T>(job: Task['job'], receive: (port: MessagePort) => Promise<T>): Promise<T> {
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const { port1, port2 } = new MessageChannel();
    worker.ref();
    try {
      worker.postMessage({ job, port: port2 } satisfies Task, [port2]);
      await once(worker, 'message');
      return await receive(port1);
    } finally {
      // An idle thread does not keep the process alive.
      worker.unref();
      port1.close();
    }
  }

  #start(): Worker {
    const options = { workerData: PARSER, resourceLimits: RESOURCE_LIMITS };
    const worker = new Worker(new URL(import.meta.url), options);
    worker.once('error', () => {
      this.#worker = undefined;
    });
    return worker;
  }
}

const thread = new ParseThread();

function parse({ kind, text, file }: Job): Parsed {
  return kind === 'limits' ? parseLimits(text, file) : parseOverrides(text, file);
}

/** Runs in the thread: parses the file and sends its content in slices. */
export function sendParsed(job: Job, port: Pick<MessagePort, 'postMessage'>): void {
  const send = (message: Message) => port.postMessage(message);
  try {
    const { accounts, organizations, addresses, ...rest } = parse(job);
    const maps: OverrideMaps = { accounts, organizations, addresses };
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

/** Receives the slices, one message per event loop tick. A listener would get all of them in one tick and block requests. */
export async function receiveParsed(port: MessagePort, file: string): Promise<Parsed> {
  const maps = {
    accounts: new Map<string, Overrides>(),
    organizations: new Map<string, Overrides>(),
    addresses: new Map<string, Overrides>(),
  };
  for (;;) {
    const message = receiveMessageOnPort(port)?.message as Message | undefined;
    if (message === undefined) throw new Error(`the thread that parses ${file} ended before it finished`);
    if ('problems' in message) throw new ConfigError(message.problems);
    if ('rest' in message) return { ...message.rest, ...maps };
    for (const [id, overrides] of message.entries) maps[message.section].set(id, overrides);
    await setImmediate();
  }
}

if (!isMainThread && workerData === PARSER) {
  parentPort?.on('message', ({ job, port }: Task) => {
    if (job.kind === 'line') port.postMessage({ line: lineOfPath(job.text, job.path) });
    else sendParsed(job, port);
    port.close();
    parentPort?.postMessage('sent');
  });
}
