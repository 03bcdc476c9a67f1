import type { Cores } from '../lab/machine.ts';
import type { Program } from '../lab/program.ts';

/** What every contestant stands between, and what it has to enforce. */
export interface Scene {
  /** A folder of this contestant's own, for its configuration. */
  readonly folder: string;
  readonly upstreamPort: number;
  /** Set where the upstream's port speaks TLS: what verifies its certificate. */
  readonly upstreamCaFile?: string;
  readonly redisPort: number;
  readonly cores: Cores | undefined;
  /** Requests per second and Account. */
  readonly limit: number;
  /** Requests per second and Organization of ten Accounts; ten times the Account's by default. */
  readonly organizationLimit?: number;
  /** Accounts `acct_1` to `acct_N`, whose tokens are `token-1` to `token-N`. */
  readonly accounts: number;
}

/** `http://127.0.0.1:PORT`, or `https:`. */
export function upstreamUrl({ upstreamPort, upstreamCaFile }: Scene): string {
  return `${upstreamCaFile === undefined ? 'http' : 'https'}://127.0.0.1:${upstreamPort}`;
}

/** A contestant that takes requests. */
export interface Running {
  readonly port: number;
  /** Everything that decides and forwards, a limiter service included; Redis is counted apart. */
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

/** A program that takes requests at this port, and the limiter that it asks, which ends after it. */
export function runningOf(program: Program, port: number, limiter?: Running): Running {
  const stop = async () => {
    await program.stop();
    await limiter?.stop();
  };
  return { port, pids: [program.pid, ...(limiter?.pids ?? [])], stop };
}

/** One way to put a limit in front of the same upstream. */
export interface Contestant {
  readonly name: string;
  /** How it limits, in a few words for the table. */
  readonly limiter: string;
  readonly hasLimiter: boolean;
  /** Its version, or why it cannot take part here. */
  find(): { readonly version: string } | { readonly missing: string };
  start(scene: Scene): Promise<Running>;
}
