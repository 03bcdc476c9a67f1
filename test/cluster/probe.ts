import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Namespace } from './commands.ts';

/**
 * A script of the folder `probe` that runs in the cluster and writes one JSON value a line. A script that does not end on its
 * own has to end with its standard input: `kill` ends only the kubectl, and `endInput` waits for its last lines.
 */
export interface Probe {
  readonly lines: AsyncIterableIterator<string>;
  /** Rejects with what it wrote to standard error if it fails. */
  readonly ended: Promise<void>;
  endInput(): void;
  kill(): void;
}

export type ProbeScript = 'load' | 'request' | 'flood' | 'follow';

export function startProbe(namespace: Namespace, script: ProbeScript, args: readonly string[]): Probe {
  const code = readFileSync(join(import.meta.dirname, 'probe', `${script}.mjs`), 'utf8');
  const child = namespace.exec('deployment/probe', [
    'node',
    '--input-type=module',
    '-e',
    code,
    '--',
    ...args,
  ]);
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const ended = once(child, 'close').then(([code]) => {
    if (code !== 0) throw new Error(`the probe ${script} failed (${code}): ${errors}`);
  });
  // A later await still gets the error.
  ended.catch(() => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { lines, ended, endInput: () => child.stdin.end(), kill: () => child.kill() };
}

/** Runs a script to its end; answers its last line. */
export async function probe<T>(
  namespace: Namespace,
  script: ProbeScript,
  args: readonly string[],
): Promise<T> {
  const { lines, ended } = startProbe(namespace, script, args);
  let last = '';
  for await (const line of lines) last = line;
  await ended;
  return JSON.parse(last) as T;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** One GET from inside the cluster; a token of '' sends none. */
export function ask(namespace: Namespace, url: string, token: string): Promise<Answer> {
  return probe<Answer>(namespace, 'request', [url, token]);
}
