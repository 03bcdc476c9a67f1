import { limitInForce, rowNamed } from '../../domain/limits/limits.ts';
import { planOfOwner } from '../../stages/buckets/plans.ts';
import { findOwner, type OwnerSources } from './owner-usage.ts';

/** What the files set for a bucket of one owner, by its plan as far as that is known here. Undefined if the limits have no such row. */
export async function filedLimit(
  bucket: string,
  id: string,
  sources: OwnerSources,
): Promise<number | 'none' | undefined> {
  const { limits } = sources.buckets;
  const row = rowNamed(limits, bucket);
  if (row === undefined) return undefined;
  const owner = await findOwner({ scope: row.scope, id }, sources);
  const { nowMs } = sources.buckets;
  const plan = planOfOwner(limits, row.scope, id, owner ?? {}, nowMs);
  return limitInForce(limits, row, id, plan, nowMs).limit ?? 'none';
}
