/** What a run measures, and for how long. */
export interface BenchmarkOptions {
  readonly quick: boolean;
  readonly write: boolean;
  readonly rounds?: number;
  readonly seconds?: number;
  readonly only?: string;
  readonly measure?: string;
}

export interface Plan {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly isWritten: boolean;
  includes(contestant: string): boolean;
  measures(name: Measurement): boolean;
}

export type Measurement = 'throughput' | 'refused' | 'messages' | 'latency' | 'memory' | 'window' | 'scaling';

const QUICK: readonly Measurement[] = ['throughput', 'refused', 'latency'];

export function planOf({ quick, write, rounds, seconds, only, measure }: BenchmarkOptions): Plan {
  const wanted = only?.toLowerCase().split(',');
  const measured = measure?.split(',');
  return {
    rounds: rounds ?? (quick ? 1 : 5),
    seconds: seconds ?? (quick ? 2 : 6),
    warmUpSeconds: quick ? 1 : 3,
    isWritten: write || !quick,
    includes: (name) => wanted?.some((word) => name.toLowerCase().includes(word)) ?? true,
    measures: (name) => measured?.includes(name) ?? (!quick || QUICK.includes(name)),
  };
}
