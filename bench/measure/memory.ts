import { setTimeout } from 'node:timers/promises';
import { residentBytes } from '../lab/process-table.ts';
import { openConnections } from '../load/connections.ts';
import { PATH } from '../load/wrk.ts';
import { ACCOUNTS, type Bench, FAR_ABOVE, lineupOf } from './bench.ts';

const CONNECTIONS = 10_000;
const BYTES_PER_MB = 2 ** 20;
/** A process that has just started is still giving memory back. */
const SETTLE_MS = 2_000;

export interface Memory {
  readonly atRestMb: number;
  /** With 10,000 connections that each had one answer and stay open. */
  readonly connectedMb: number;
}

/** Resident memory of the gateway's processes, Redis not counted. */
export async function measureMemory(bench: Bench): Promise<Record<string, Memory | string>> {
  const lineup = await lineupOf(bench, { name: 'memory', limit: FAR_ABOVE, accounts: ACCOUNTS });
  const results: Record<string, Memory | string> = {};
  try {
    await setTimeout(SETTLE_MS);
    for (const place of lineup.places) {
      if ('missing' in place) continue;
      const { contestant, running } = place;
      const atRest = residentBytes(running.pids);
      try {
        const connections = await openConnections(running.port, CONNECTIONS, PATH);
        const connected = residentBytes(running.pids);
        connections.close();
        results[contestant.name] = { atRestMb: atRest / BYTES_PER_MB, connectedMb: connected / BYTES_PER_MB };
      } catch (error) {
        results[contestant.name] = error instanceof Error ? error.message : String(error);
      }
      bench.say(`  memory  ${contestant.name}: ${JSON.stringify(results[contestant.name])}`);
    }
    return results;
  } finally {
    await lineup.stop();
  }
}
