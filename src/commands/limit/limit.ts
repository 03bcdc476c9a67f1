import { userInfo } from 'node:os';
import type { ShownBlock } from '../../admin/facts/block-api.ts';
import type { ShownLimit } from '../../admin/facts/live-limit-api.ts';
import type { ShownRow } from '../../admin/facts/shown-limits.ts';
import { unitOf } from '../../domain/limits/rows.ts';
import { type OverrideSection, scopeNamed } from '../../domain/limits/scopes.ts';
import { networkOf } from '../../domain/network.ts';
import { BLOCKED } from '../../facts/blocks.ts';
import { CommandError } from '../../process/failure.ts';
import { isLimits, isRows } from '../admin-answers.ts';
import { type AdminOptions, askAdmin } from '../admin-client.ts';
import { print, printJson } from '../print.ts';

export interface Reason {
  readonly why: string;
  readonly by?: string;
}

export interface SetOptions extends AdminOptions, Reason {
  readonly for?: string;
  /** Also for an id that nobody is known to have. */
  readonly force?: boolean;
}

/** `weir limit set acct_big account-read=5000 --for 2h --why launch` */
export async function setLimit(id: string, buckets: readonly string[], options: SetOptions): Promise<void> {
  const limits = new Map<string, number>();
  for (const [bucket, points] of buckets.map(readBucket)) {
    if (limits.has(bucket)) throw new CommandError(`${bucket} is set twice.`);
    limits.set(bucket, points);
  }
  const [first = ''] = limits.keys();
  const section = sectionOf(first, await readRows(options));
  const force = options.force && { force: true };
  const body = { ...Object.fromEntries(limits), for: options.for ?? '1h', ...reasonOf(options), ...force };
  const path = `/limits/live/${section}/${encodeURIComponent(id)}`;
  const set = (await askAdmin(options, path, isLimits, { method: 'PUT', body })) as readonly ShownLimit[];
  for (const limit of set) print(`Set: ${textOf(limit)}`);
  printNotes(set);
}

/** `weir limit list` */
export async function listLimits(options: AdminOptions & { readonly json?: boolean }): Promise<void> {
  const limits = await readAll(options);
  if (options.json) printJson(limits);
  else if (limits.length === 0) print('There are no live limits, and nothing is blocked.');
  else for (const limit of limits) print(textOf(limit));
}

/** `weir limit unset acct_big --why "launch is over"` */
export async function unsetLimit(
  id: string,
  bucket: string | undefined,
  options: AdminOptions & Reason,
): Promise<void> {
  const known = (await readLimits(options)).filter(
    (limit) => [id, networkOf(id)].includes(limit.id) && (bucket === undefined || limit.bucket === bucket),
  );
  if (known.length === 0) throw new CommandError(`${id} has no such live limit: weir limit list shows all.`);
  const rows = await readRows(options);
  for (const section of new Set(known.map((limit) => sectionOf(limit.bucket, rows)))) {
    const query = new URLSearchParams({ ...reasonOf(options), ...(bucket && { bucket }) });
    const path = `/limits/live/${section}/${encodeURIComponent(id)}?${query}`;
    const removed = (await askAdmin(options, path, isLimits, { method: 'DELETE' })) as readonly ShownLimit[];
    for (const limit of removed) print(`Removed: ${limit.bucket} of ${limit.id}. The files apply again.`);
    printNotes(removed);
  }
}

function printNotes(changed: readonly ShownLimit[]): void {
  for (const note of new Set(changed.flatMap(({ notes = [] }) => notes))) print(note);
}

/** The live limits and the blocks. */
export async function readAll(options: AdminOptions): Promise<readonly (ShownLimit | ShownBlock)[]> {
  return (await askAdmin(options, '/limits/live', isLimits)) as readonly (ShownLimit | ShownBlock)[];
}

async function readLimits(options: AdminOptions): Promise<readonly ShownLimit[]> {
  return (await readAll(options)).filter((limit): limit is ShownLimit => limit.bucket !== BLOCKED);
}

function readBucket(text: string): [bucket: string, points: number] {
  const [, bucket = '', points] = /^([\w-]+)=(\d+)$/.exec(text) ?? [];
  if (points === undefined)
    throw new CommandError(`${text}: give a bucket and its points, as in account-read=5000.`);
  return [bucket, Number(points)];
}

async function readRows(options: AdminOptions): Promise<readonly ShownRow[]> {
  return (await askAdmin(options, '/limits', isRows)) as readonly ShownRow[];
}

/** Where the limits file has a bucket; the gateway refuses a bucket that it does not know. */
function sectionOf(bucket: string, rows: readonly ShownRow[]): OverrideSection {
  const row = rows.find((one) => one.bucket === bucket);
  return (row && scopeNamed(row.scope).overrides) ?? 'accounts';
}

export function textOf(shown: ShownLimit | ShownBlock): string {
  const { scope, id, bucket, limit, until, why, by } = shown;
  if (bucket === BLOCKED) return `${scope} ${id} is blocked until ${until}, by ${by}: ${why}`;
  const counts = 'counts' in shown ? shown.counts : 'points';
  const raised = 'inForce' in shown ? ` (${shown.notes?.join(' ')})` : '';
  return `${bucket} of ${id}: ${limit} ${unitOf(counts)} until ${until}, by ${by}: ${why}${raised}`;
}

/** The reason that a request gives for the audit log, and who acts. */
export function reasonOf({ why, by = userName() }: Reason) {
  return { why, by };
}

/** Who runs the command. A container's user, such as the user of Weir's image, may have no name. */
export function userName(): string {
  const { SUDO_USER } = process.env;
  if (SUDO_USER) return SUDO_USER;
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
