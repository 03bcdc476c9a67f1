import { cpuUs } from './process-table.ts';

/** A B C A B C …: measures each of them once in every round, so that a busy machine meets all alike. @returns their rounds, by name */
export async function inTurn<Side extends { readonly name: string }, Figure>(
  sides: readonly Side[],
  rounds: number,
  measure: (side: Side) => Promise<Figure>,
  say: (line: string) => void = () => undefined,
): Promise<Record<string, Figure[]>> {
  const results: Record<string, Figure[]> = Object.fromEntries(sides.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const side of sides) {
      const figure = await measure(side);
      results[side.name]?.push(figure);
      say(`  round ${round}/${rounds}  ${side.name}: ${JSON.stringify(figure)}`);
    }
  }
  return results;
}

/** What a request of a load cost, in microseconds of CPU time. */
export interface Cost {
  readonly gatewayUs: number;
  /** 0 without a Redis. */
  readonly redisUs: number;
}

/** Runs a load and divides the CPU time of the gateway's processes and of Redis by its requests. */
export async function costOf<Load extends { readonly requests: number }>(
  { pids }: { readonly pids: readonly number[] },
  load: () => Promise<Load>,
  redis?: { readonly pid: number },
): Promise<Cost & Load> {
  const redisPids = redis === undefined ? [] : [redis.pid];
  const [gatewayBefore, redisBefore] = [cpuUs(pids), cpuUs(redisPids)];
  const result = await load();
  return {
    ...result,
    gatewayUs: (cpuUs(pids) - gatewayBefore) / result.requests,
    redisUs: (cpuUs(redisPids) - redisBefore) / result.requests,
  };
}

const ROUND_MS = 150;
/** Calls between two looks at the clock. */
const CALLS = 200;

/** Microseconds that a call of this process takes, over 150 ms. A call that has no promise is not waited for. */
export async function usPerCall(call: (index: number) => unknown): Promise<number> {
  const startMs = performance.now();
  let calls = 0;
  while (performance.now() - startMs < ROUND_MS) {
    for (const end = calls + CALLS; calls < end; calls++) {
      const outcome = call(calls);
      if (outcome instanceof Promise) await outcome;
    }
  }
  return ((performance.now() - startMs) * 1000) / calls;
}

/** The number that this share of them does not exceed; 0 of none. */
export function percentile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** The middle one, or the mean of the two in the middle; NaN of none. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  const lower = sorted[Math.ceil(middle) - 1] ?? Number.NaN;
  return (upper + lower) / 2;
}

export function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** A share with its standard error. */
export interface Share {
  readonly share: number;
  readonly error: number;
}

/** How much more the ones are than the others, figures of the same turns, as a share of the whole. */
export function moreOf(
  ones: readonly number[],
  others: readonly number[],
  whole: readonly number[] = others,
): Share {
  const differences = ones.map((one, turn) => one - (others[turn] ?? Number.NaN));
  const [more, all] = [mean(differences), mean(whole)];
  const variance = mean(differences.map((difference) => (difference - more) ** 2));
  return { share: more / all, error: Math.sqrt(variance / (differences.length - 1)) / all };
}

/** Such as `7.1 ± 4.1 %`. */
export function shownShare({ share, error }: Share): string {
  return `${(share * 100).toFixed(1)} ± ${(error * 100).toFixed(1)} %`;
}
