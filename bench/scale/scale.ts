import type { Bench } from '../lab/bench.ts';
import { measureBytes } from './bytes.ts';
import { measureRequests } from './requests.ts';

/** Whether a request costs more with more Accounts, and the bytes that docs/scale.md calculates with. The word `bytes` chooses these. */
export async function measureScale(bench: Bench): Promise<readonly string[]> {
  const requests = await measureRequests(bench);
  return bench.includes('bytes') ? [...requests, '', ...(await measureBytes(bench))] : requests;
}
