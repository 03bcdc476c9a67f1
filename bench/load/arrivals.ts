import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./arrivals-program.ts', import.meta.url));

export interface ArrivalOptions {
  readonly port: number;
  readonly path: string;
  readonly connections: number;
  readonly accounts: number;
  /** The requests begin with the Account after this one. Default: 0. */
  readonly before?: number;
  /** Sent at the first phase's rate before anything is measured; 0 for none. */
  readonly warmUpSeconds: number;
  /** Rates in requests per second, one after the other. */
  readonly phases: readonly { readonly seconds: number; readonly rate: number }[];
  readonly findsWorstWindow: boolean;
}

export interface ArrivalResult {
  readonly sent: number;
  readonly answered: number;
  readonly admitted: number;
  /** Answered without having been counted, and said so. */
  readonly degraded: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** The most requests that any one second certainly admitted, degraded ones not counted; 0 unless asked for. */
  readonly worstWindow: number;
}

/** An open loop: requests come at their rate whether or not the answers keep up. */
export async function arrivals(options: ArrivalOptions, cores: string | undefined): Promise<ArrivalResult> {
  const node = [process.execPath, '--import', 'tsx', PROGRAM, JSON.stringify(options)];
  const [program = '', ...args] = cores === undefined ? node : ['taskset', '-c', cores, ...node];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  if (code !== 0) throw new Error(`the arrivals program ended with ${code}`);
  return JSON.parse(output);
}
