import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A moment that starts a second, a minute and an hour. */
export const START_MS = Date.UTC(2026, 10, 20, 12);

export interface LoggedRequest {
  /** When it was charged, after START_MS. */
  readonly atMs: number;
  /** Until its response had ended and the line was written. */
  readonly lasts?: number;
  readonly account?: string;
  readonly organization?: string;
  readonly more?: Readonly<Record<string, unknown>>;
}

/** A line of Weir's access log: a read of 1 point. */
export function logLine({
  atMs,
  lasts = 3,
  account = 'acct_1',
  organization,
  more = {},
}: LoggedRequest): string {
  return JSON.stringify({
    level: 30,
    time: Math.round(START_MS + atMs + lasts),
    requestId: `request-${atMs}`,
    method: 'GET',
    path: '/v3/things',
    operation: 'listThings',
    account,
    organization,
    principal: 'svc_1',
    kind: 'read',
    cost: 1,
    chargedAtUs: Math.round((START_MS + atMs) * 1000),
    outcome: 'admitted',
    status: 200,
    totalMs: lasts,
    msg: 'request',
    ...more,
  });
}

export function logText(requests: readonly LoggedRequest[]): string {
  return requests.map((request) => `${logLine(request)}\n`).join('');
}

/** Writes files into a new folder. @returns the path of each by its name */
export async function writeFiles<Name extends string>(
  files: Readonly<Record<Name, string | Buffer>>,
): Promise<Record<Name, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-replay-'));
  const paths: [string, string][] = [];
  for (const [name, content] of Object.entries<string | Buffer>(files)) {
    const path = join(folder, name);
    await writeFile(path, content);
    paths.push([name, path]);
  }
  return Object.fromEntries(paths) as Record<Name, string>;
}
