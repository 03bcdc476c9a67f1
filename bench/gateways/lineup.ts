import { CONTESTANTS } from '../contestants/all.ts';
import type { Contestant, Running, Scene } from '../contestants/contestant.ts';
import type { Bench } from '../lab/bench.ts';
import type { WrkOptions } from '../load/wrk.ts';

/** A contestant that takes requests. */
export interface Side {
  readonly name: string;
  readonly running: Running;
}

/** What all contestants of a measurement have in common. */
export interface Terms extends Partial<Scene> {
  readonly takesPart?: (contestant: Contestant) => boolean;
}

/** Starts the chosen contestants on the same terms for as long as `work` takes. One that cannot start is named, not fatal. */
export async function among<Figures>(
  bench: Bench,
  name: string,
  { takesPart = () => true, ...terms }: Terms,
  work: (sides: readonly Side[]) => Promise<Figures>,
): Promise<Figures> {
  bench.say(`\n${name}`);
  const sides: Side[] = [];
  try {
    for (const contestant of chosenOf(bench).filter(takesPart)) {
      const found = contestant.find();
      try {
        if ('missing' in found) throw new Error(found.missing);
        const running = await bench.start(contestant, `${name} ${contestant.name}`, terms);
        sides.push({ name: contestant.name, running });
      } catch (error) {
        bench.say(`  ${contestant.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return await work(sides);
  } finally {
    for (const { running } of sides) await running.stop();
  }
}

const MEASUREMENTS = ['throughput', 'refused', 'messages', 'latency', 'window', 'memory', 'scaling'] as const;
const QUICK: readonly string[] = ['throughput', 'refused', 'latency'];

/** The measurements that the words name: all if there are no such words, and three in a quick run. */
export function measurementsOf({ words, isQuick }: Bench): readonly (typeof MEASUREMENTS)[number][] {
  const named = MEASUREMENTS.filter((name) => words.includes(name));
  return named.length > 0 ? named : MEASUREMENTS.filter((name) => !isQuick || QUICK.includes(name));
}

/** The contestants that contain one of the words that name no measurement; all if there are no such words. */
export function chosenOf({ words }: Bench): readonly Contestant[] {
  const wanted = words.filter((word) => !MEASUREMENTS.some((name) => name === word));
  return CONTESTANTS.filter(
    ({ name }) =>
      wanted.length === 0 || wanted.some((word) => name.toLowerCase().includes(word.toLowerCase())),
  );
}

const WARM_REQUESTS = 40_000;
const MAX_WARM_UPS = 6;

/** Until the machine code is there: compilers look at how often something ran, not at how long. */
export async function warmUp(
  bench: Bench,
  sides: readonly Side[],
  options: Partial<WrkOptions> = {},
): Promise<void> {
  for (const { running } of sides) {
    let sent = 0;
    for (let turn = 0; turn < MAX_WARM_UPS && sent < WARM_REQUESTS; turn++) {
      sent += (await bench.load(running, { ...options, seconds: warmUpSeconds(bench) })).requests;
    }
  }
}

export function warmUpSeconds(bench: Bench): number {
  return bench.either(3, 1);
}
