import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { findProgram } from '../lab/machine.ts';

const SCRIPT = fileURLToPath(new URL('./script.ts', import.meta.url));

/** Nothing that was started outlives the benchmark. */
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** A sample of k6: an admitted request, a check, a duration. */
export interface Sample {
  readonly metric: string;
  readonly data: { readonly time: string; readonly value: number; readonly tags: Record<string, string> };
}

/** What a script writes to the file that SUMMARY names. */
export interface Summary {
  readonly metrics: Readonly<
    Record<
      string,
      {
        readonly values: Readonly<Record<string, number>>;
        readonly thresholds?: Readonly<Record<string, { readonly ok: boolean }>>;
      }
    >
  >;
}

export function readSummary(file: string): Summary {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** The samples that are worth parsing: k6 prints a dozen for each request. */
const METRICS =
  /^\{"metric":"(?:http_req_duration|admitted_from_ms|refused|degraded|checks|dropped_iterations)","type":"Point"/;

/** Runs the script of this name, and passes on its samples. @returns k6's exit code: not 0 if a threshold was broken */
export async function runK6(
  name: string,
  env: Readonly<Record<string, string>>,
  onSample: (sample: Sample) => void,
): Promise<number> {
  const child = startK6(name, env, ['--out', 'json=-']);
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    if (METRICS.test(line)) onSample(JSON.parse(line));
    else if (!line.startsWith('{')) process.stdout.write(`${line}\n`);
  });
  const [[code]] = await Promise.all([once(child, 'exit'), once(lines, 'close')]);
  return code ?? 1;
}

/** @throws Error if there is none, which a study that takes long to begin asks first */
export function findK6(): string {
  const k6 = findProgram('k6', 'K6');
  if (k6 === undefined) throw new Error('No k6 on PATH or in K6: go install go.k6.io/k6/v2@v2.1.0');
  return k6;
}

/** Starts the script of this name. */
export function startK6(
  name: string,
  env: Readonly<Record<string, string>>,
  options: readonly string[] = [],
) {
  const k6 = findK6();
  const variables = Object.entries({ ...env, SCRIPT: name }).flatMap(([key, value]) => [
    '-e',
    `${key}=${value}`,
  ]);
  const general = ['--quiet', '--no-usage-report', '--system-tags', 'status,check'];
  const child = spawn(k6, ['run', ...general, ...options, ...variables, SCRIPT], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}
