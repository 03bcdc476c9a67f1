/** Parses large limits files in a worker thread so that a reload does not delay requests. */
import { once } from 'node:events';
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { lineOfPath } from '../../reader/yaml-text.ts';
import { type Job, type LimitsTask, type Parsed, parseJob, receiveParsed } from './parse-messages.ts';

/** A text of this length or less is parsed in a few milliseconds, which is less than a thread takes to start. */
export const SMALL_CHARACTERS = 32_768;

/** Node 20 runs only compiled files in a worker thread. From source, every file is parsed in the main thread. */
const IS_BUILT = import.meta.url.endsWith('.js');

/**
 * Limits the memory that a reload can add to the container. 1 MiB of text needs a tenth of it. The small young generation
 * makes the idle thread 20 MB smaller.
 */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 4 };

/** Parses a file. Rejects with a ConfigError that has every problem. */
export async function parseFile(job: Job): Promise<Parsed> {
  if (!IS_BUILT || job.text.length <= SMALL_CHARACTERS) return parseJob(job);
  return thread.run(job, (port) => receiveParsed(port, job.file));
}

/** The line of a setting in a valid file, or of its nearest parent. A large file does not delay requests. */
export async function findLine(text: string, path: readonly string[]): Promise<number | undefined> {
  if (!IS_BUILT || text.length <= SMALL_CHARACTERS) return lineOfPath(text, path);
  return thread.run({ kind: 'line', text, path }, (port) => {
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
  run<T>(job: LimitsTask['job'], receive: (port: MessagePort) => Promise<T>): Promise<T> {
    const result = this.#last.then(() => this.#run(job, receive));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #run<T>(job: LimitsTask['job'], receive: (port: MessagePort) => Promise<T>): Promise<T> {
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const { port1, port2 } = new MessageChannel();
    worker.ref();
    try {
      worker.postMessage({ job, port: port2 } satisfies LimitsTask, [port2]);
      await once(worker, 'message');
      return await receive(port1);
    } finally {
      // An idle thread does not keep the process alive.
      worker.unref();
      port1.close();
    }
  }

  #start(): Worker {
    const worker = new Worker(new URL('./parse-worker.js', import.meta.url), {
      resourceLimits: RESOURCE_LIMITS,
    });
    worker.once('error', () => {
      this.#worker = undefined;
    });
    return worker;
  }
}

const thread = new ParseThread();
