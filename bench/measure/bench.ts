import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { CONTESTANTS } from '../contestants/all.ts';
import type { Contestant, Scene } from '../contestants/contestant.ts';
import type { Cores } from '../lab/machine.ts';
import type { Service, Upstream } from '../load/upstream.ts';
import type { Plan } from '../plan.ts';
import { type Lineup, startLineup } from './lineup.ts';

/** What all measurements of one run share. */
export interface Bench {
  readonly folder: string;
  readonly cores: Cores | undefined;
  readonly upstream: Upstream;
  readonly redis: Service;
  readonly plan: Plan;
  say(line: string): void;
}

/** What a measurement asks of every contestant. */
export interface Terms {
  /** A word for the folder of its configurations. */
  readonly name: string;
  readonly limit: number;
  readonly accounts: number;
}

/** Limits that no load here reaches. */
export const FAR_ABOVE = 10_000_000;
export const ACCOUNTS = 1_000;
/** Connections of the closed-loop load. */
export const CONNECTIONS = 64;

/** What a contestant is started in. */
interface Surroundings extends Pick<Bench, 'folder' | 'cores'> {
  readonly upstream: Pick<Service, 'port'>;
  readonly redis: Pick<Service, 'port'>;
}

export function sceneOf(
  { folder, cores, upstream, redis }: Surroundings,
  { name, limit, accounts }: Terms,
): Scene {
  const own = join(folder, name);
  mkdirSync(own, { recursive: true });
  return { folder: own, cores, upstreamPort: upstream.port, redisPort: redis.port, limit, accounts };
}

/** The contestants of the plan, started on these terms. */
export function lineupOf(
  bench: Bench,
  terms: Terms,
  takesPart: (contestant: Contestant) => boolean = () => true,
): Promise<Lineup> {
  const chosen = CONTESTANTS.filter((one) => bench.plan.includes(one.name) && takesPart(one));
  return startLineup(chosen, sceneOf(bench, terms), bench.say);
}
