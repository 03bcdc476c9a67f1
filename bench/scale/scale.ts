import type { Bench } from '../lab/bench.ts';
import { measureBytes } from './bytes.ts';
import { measureLeases } from './leases.ts';
import { measureRequests } from './requests.ts';

/**
 * Whether a request costs more with more Accounts, the bytes that docs/scale.md calculates with, and what leases cost Redis. The words `bytes`
 * and `leases` choose these.
 */
export async function measureScale(bench: Bench): Promise<readonly string[]> {
  const lines = [...(await measureRequests(bench))];
  if (bench.includes('bytes')) lines.push('', ...(await measureBytes(bench)));
  if (bench.includes('leases')) lines.push('', ...(await measureLeases(bench)));
  return lines;
}
