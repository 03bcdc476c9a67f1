import type { Seen } from './requests.ts';

export interface Run {
  readonly date: string;
  readonly hardware: string;
  readonly node: string;
  /** Requests per second. */
  readonly rate: number;
  readonly seconds: number;
  readonly samples: Sample[];
  readonly events: Event[];
  /** Undefined while it runs. */
  ended: { readonly thresholdsKept: boolean } | undefined;
}

/** The state at one moment, and what clients saw since the one before. */
export interface Sample {
  readonly seconds: number;
  /** The machine's load average over a minute. */
  readonly load: number;
  readonly redisMb: number;
  /** The first one stays for the whole run. */
  readonly replicas: readonly {
    readonly name: string;
    readonly residentMb: number;
    readonly handles: number;
  }[];
  readonly seen: Seen;
}

export interface Event {
  readonly kind: 'redis' | 'reload' | 'rollout';
  readonly seconds: number;
  tookSeconds: number;
}
