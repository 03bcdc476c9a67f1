/** The other end of `parseElsewhere`: parses one file and sends what it holds in slices. */
import { isMainThread, type MessagePort, workerData } from 'node:worker_threads';
import type { Limits, OverrideMaps, Overrides } from '../../domain/limits.ts';
import { ConfigError, type Problem } from '../problem.ts';
import { type Job, parseHere } from './job.ts';

type Section = keyof OverrideMaps;

/** What a thread is started with. */
export interface ThreadData {
  readonly job: Job;
  /** Where the messages go. */
  readonly port: MessagePort;
}

/** Some of a file's overrides; and last all else that it holds, or why it cannot be used. */
export type Message =
  | { readonly section: Section; readonly entries: readonly (readonly [id: string, Overrides])[] }
  | { readonly rest: Omit<Limits, Section> | object }
  | { readonly problems: readonly Problem[] };

/** About a millisecond's worth to receive. */
const SLICE = 250;

function run({ job, port }: ThreadData): void {
  const send = (message: Message) => port.postMessage(message);
  try {
    const { accounts, organizations, ...rest } = parseHere(job);
    for (const [section, map] of Object.entries({ accounts, organizations })) {
      const entries = [...map];
      for (let from = 0; from < entries.length; from += SLICE) {
        send({ section: section as Section, entries: entries.slice(from, from + SLICE) });
      }
    }
    send({ rest });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    send({ problems: error.problems });
  }
}

if (!isMainThread) run(workerData as ThreadData);
