import type { Contestant } from './contestants/contestant.ts';
import type { Latency } from './measure/latency.ts';
import type { Memory } from './measure/memory.ts';
import type { MessageRounds } from './measure/messages.ts';
import type { Scaling } from './measure/scaling.ts';
import type { ThroughputRounds } from './measure/throughput.ts';
import type { WorstWindow } from './measure/window.ts';

/** Everything that one run saw, as it is kept in bench/results/gateway.json. */
export interface Results {
  readonly date: string;
  readonly command: string;
  readonly hardware: string;
  /** How the cores were divided, in words. */
  readonly cores: string;
  /** What the machine had to do before the run began: processes that wanted a core, over the last minute. */
  readonly loadBefore: number;
  readonly versions: readonly string[];
  readonly contestants: readonly Entry[];
  readonly throughput?: ThroughputRounds;
  readonly refused?: ThroughputRounds;
  readonly messages?: MessageRounds;
  readonly latency?: Latency;
  readonly window?: Record<string, WorstWindow[]>;
  readonly memory?: Record<string, Memory | string>;
  readonly scaling?: Scaling;
}

export interface Entry {
  readonly name: string;
  readonly limiter: string;
  readonly version?: string;
  readonly missing?: string;
}

export function entryOf({ name, limiter, find }: Contestant): Entry {
  return { name, limiter, ...find() };
}
