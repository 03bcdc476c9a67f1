import type { ShownChange } from '../admin/history/change.ts';
import { shownTime } from '../domain/shown.ts';
import { isChanges } from './admin-answers.ts';
import { type AdminOptions, askAdmin } from './admin-client.ts';
import { print, printJson } from './print.ts';
import { tableLines } from './terminal/line.ts';

/** `weir changes`: what changed, newest first. */
export async function changes(
  options: AdminOptions & { readonly since?: string; readonly json?: boolean },
): Promise<void> {
  const since = options.since ?? '24h';
  const list = (await askAdmin(
    options,
    `/changes?since=${encodeURIComponent(since)}`,
    isChanges,
  )) as readonly ShownChange[];
  if (options.json) printJson(list);
  else if (list.length === 0) print(`Nothing changed in the last ${since}.`);
  else print(...tableLines(list.map(rowOf)));
}

function rowOf({ at, kind, subject, text, by, why, replica }: ShownChange): readonly string[] {
  const reason = why === null ? [] : [`${why}${by === null ? '' : ` (${by})`}`];
  const place = replica === null ? [] : [`at ${replica}`];
  return [shownTime(at), kind, subject ?? '', text, [...reason, ...place].join(' ')];
}
