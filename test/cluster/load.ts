import type { Namespace } from './commands.ts';
import { type Probe, startProbe } from './probe.ts';

/** Where every load goes: through the Service. */
export const URL = 'http://weir/v3/things';
export const RATE_PER_SECOND = Number(process.env.WEIR_TEST_RATE ?? 100);

/** What a load has sent so far, and what it got. */
export interface Progress {
  readonly isFinal: boolean;
  readonly sent: number;
  /** By status; those that were not counted have the mode as well: `200 degraded`. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly failed: number;
  readonly failures: readonly string[];
  /** Every counted 200: a span of time that includes its decision. Empty until the load has ended. */
  readonly admittedMs: readonly (readonly [fromMs: number, toMs: number])[];
}

/** Sends requests for this time, unless `finish` ends it earlier. */
export function startLoad(
  namespace: Namespace,
  token: string,
  ratePerSecond: number,
  seconds: number,
): Probe {
  return startProbe(namespace, 'load', [URL, token, String(ratePerSecond), String(seconds)]);
}

/** Reads progress until a line meets the condition. */
export async function until(load: Probe, isMet: (progress: Progress) => boolean): Promise<Progress> {
  for (;;) {
    const { value, done } = await load.lines.next();
    if (done === true) {
      await load.ended;
      throw new Error('the load ended before what was waited for');
    }
    const progress = JSON.parse(value) as Progress;
    if (progress.sent !== undefined && isMet(progress)) return progress;
  }
}

/** Sends nothing more; resolves once every request has been answered. */
export async function finish(load: Probe): Promise<Progress> {
  load.endInput();
  return last(load);
}

/** Resolves once a load has ended on its own. */
export async function last(load: Probe): Promise<Progress> {
  const progress = await until(load, ({ isFinal }) => isFinal);
  await load.ended;
  return progress;
}

export const degradedIn = ({ statuses }: Progress) => statuses['200 degraded'] ?? 0;
