import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { Overrides } from '../../domain/limits.ts';
import { ConfigError } from '../problem.ts';
import { type Job, type Parsed, parseHere } from './job.ts';
import type { Message, ThreadData } from './thread.ts';

/** A text up to this length is parsed within a few milliseconds, less than a thread takes to start. */
const SMALL_CHARACTERS = 32_768;

/** A thread runs what was built; where this runs from its source, there is none. */
const IS_BUILT = import.meta.url.endsWith('.js');

/** A reload must not grow a container past its memory without end; 1 MiB of text takes a tenth of this. */
const MOST_HEAP_MB = 512;

/**
 * Parses a file without keeping the requests waiting: a large one in a thread of its own. Rejects with a ConfigError
 * that carries every problem.
 */
export async function parseElsewhere(job: Job): Promise<Parsed> {
  if (!IS_BUILT || job.text.length <= SMALL_CHARACTERS) return parseHere(job);
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(new URL('./thread.js', import.meta.url), {
    workerData: { job, port: port2 } satisfies ThreadData,
    transferList: [port2],
    resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MB },
  });
  try {
    await once(worker, 'exit');
    return await received(port1, job.file);
  } finally {
    port1.close();
  }
}

/** Takes one message a turn: a listener would be given all of them at once, and the requests would wait. */
async function received(port: MessagePort, file: string): Promise<Parsed> {
  const maps = { accounts: new Map<string, Overrides>(), organizations: new Map<string, Overrides>() };
  for (;;) {
    const message = receiveMessageOnPort(port)?.message as Message | undefined;
    if (message === undefined) throw new Error(`the thread that parses ${file} sent no end`);
    if ('problems' in message) throw new ConfigError(message.problems);
    if ('rest' in message) return { ...message.rest, ...maps };
    for (const [id, overrides] of message.entries) maps[message.section].set(id, overrides);
    await setImmediate();
  }
}
