import type { ArrivalResult } from '../load/arrivals.ts';

/** Everything that one run saw, as it is kept in bench/results/gateway.json. Rounds are by the name of their contestant. */
export interface Results {
  readonly date: string;
  readonly command: string;
  readonly hardware: string;
  /** How the cores were divided, in words. */
  readonly cores: string;
  /** Processes that wanted a core before the run began, over the last minute. */
  readonly loadBefore: number;
  readonly versions: readonly string[];
  readonly contestants: readonly Entry[];
  readonly throughput?: Record<string, Throughput[]>;
  readonly refused?: Record<string, Throughput[]>;
  /** CPU time of the gateway for each request, in microseconds: kind of message, then contestant. */
  readonly messages?: Record<string, Record<string, number[]>>;
  readonly latency?: Latency;
  readonly window?: Record<string, WorstWindow[]>;
  readonly memory?: Record<string, Memory | string>;
  readonly scaling?: Scaling;
}

export interface Entry {
  readonly name: string;
  readonly limiter: string;
  readonly version?: string;
  /** Why it took no part. */
  readonly missing?: string;
}

/** What one closed-loop run came to. */
export interface Throughput {
  readonly requestsPerSecond: number;
  /** Share of the answers that were refusals, 0 to 1. */
  readonly refused: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the gateway's processes, a limiter service included, per request. */
  readonly gatewayCpuUs: number;
  /** CPU time of Redis per request. */
  readonly redisCpuUs: number;
}

export interface Latency {
  /** Requests per second for every contestant that `ownRates` does not name. */
  readonly rate: number;
  /** Lower rates, by contestant: half of its own capacity, because above it every queue grows without end. */
  readonly ownRates: Readonly<Record<string, number>>;
  /** The upstream without anything before it. It is subtracted from the others. */
  readonly upstream: readonly ArrivalResult[];
  readonly contestants: Record<string, ArrivalResult[]>;
}

export interface WorstWindow {
  /** Admitted in the worst second, divided by the limit: 1 is exact, above 1 is too much. */
  readonly worst: number;
  readonly admitted: number;
  /** What was admitted and counted, divided by the limit. */
  readonly admittedShare: number;
  /** Served without having been counted, because Redis did not answer in time. */
  readonly degraded: number;
  readonly sent: number;
}

/** Resident memory of the gateway's processes, without Redis. */
export interface Memory {
  readonly atRestMb: number;
  /** With 10,000 connections that each had one answer and stay open. */
  readonly connectedMb: number;
}

export interface Scaling {
  /** Weir processes on one Redis; figures are sums over the processes, CPU time is per request. */
  readonly processes: readonly ScalingPoint[];
  /** Accounts that take turns, on one process. */
  readonly accounts: readonly ScalingPoint[];
  /** Cores that the processes shared; undefined if they ran anywhere. */
  readonly cores: number | undefined;
}

export interface ScalingPoint {
  readonly count: number;
  readonly requestsPerSecond: number;
  readonly gatewayCpuUs: number;
  readonly redisCpuUs: number;
}
