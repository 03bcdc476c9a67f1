import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Contestant, Running, Scene } from '../contestants/contestant.ts';

/** A contestant that stands ready, or the sentence that says why it does not. */
export type Place =
  | { readonly contestant: Contestant; readonly running: Running }
  | { readonly contestant: Contestant; readonly missing: string };

export interface Lineup {
  readonly places: readonly Place[];
  stop(): Promise<void>;
}

/** Starts every contestant on the same scene. One that cannot start is named, not fatal. */
export async function startLineup(
  contestants: readonly Contestant[],
  scene: Scene,
  say: (line: string) => void,
): Promise<Lineup> {
  const places: Place[] = [];
  for (const [index, contestant] of contestants.entries()) {
    const place = await take(contestant, { ...scene, folder: join(scene.folder, `${index}`) });
    if ('missing' in place) say(`  ${contestant.name}: ${place.missing}`);
    places.push(place);
  }
  return {
    places,
    async stop() {
      for (const place of places) if ('running' in place) await place.running.stop();
    },
  };
}

async function take(contestant: Contestant, scene: Scene): Promise<Place> {
  const found = contestant.find();
  if ('missing' in found) return { contestant, missing: found.missing };
  mkdirSync(scene.folder, { recursive: true });
  try {
    return { contestant, running: await contestant.start(scene) };
  } catch (error) {
    return { contestant, missing: error instanceof Error ? error.message : String(error) };
  }
}

/** A B C A B C …: every round measures each contestant once. @returns each contestant's rounds, by its name */
export async function alternate<T>(
  lineup: Lineup,
  rounds: number,
  measure: (running: Running, contestant: Contestant) => Promise<T>,
  say: (line: string) => void,
): Promise<Record<string, T[]>> {
  const results: Record<string, T[]> = {};
  for (let round = 1; round <= rounds; round++) {
    for (const place of lineup.places) {
      if ('missing' in place) continue;
      const { name } = place.contestant;
      const figures = await measure(place.running, place.contestant);
      results[name] = [...(results[name] ?? []), figures];
      say(`  round ${round}/${rounds}  ${name}: ${JSON.stringify(figures)}`);
    }
  }
  return results;
}

/** The middle one, or the mean of the two in the middle; NaN of none. */
export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  const lower = sorted[Math.ceil(middle) - 1] ?? Number.NaN;
  return (upper + lower) / 2;
}
