import { wrk } from '../load/wrk.ts';
import { type Bench, CONNECTIONS } from './bench.ts';
import { alternate, type Lineup } from './lineup.ts';

const WARM_REQUESTS = 40_000;
const MAX_WARM_UPS = 6;

/** Until the machine code is there: compilers look at how often something ran, not at how long. */
export async function warmUp({ cores, plan }: Bench, lineup: Lineup, accounts: number): Promise<void> {
  await alternate(
    lineup,
    1,
    async ({ port }) => {
      const options = { connections: CONNECTIONS, accounts, cores: cores?.load, port };
      let sent = 0;
      for (let turn = 0; turn < MAX_WARM_UPS && sent < WARM_REQUESTS; turn++) {
        sent += (await wrk({ ...options, seconds: plan.warmUpSeconds })).requests;
      }
    },
    () => undefined,
  );
}
