import { rowNamed } from '../../domain/limits/limits.ts';
import { filedLimitOf } from '../../stages/buckets/plans.ts';
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
  return filedLimitOf(limits, bucket, id, owner ?? {}, sources.buckets.nowMs);
}
