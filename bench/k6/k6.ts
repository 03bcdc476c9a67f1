import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { findProgram } from '../lab/machine.ts';

const SCRIPT = fileURLToPath(new URL('./script.ts', import.meta.url));

/** A sample of k6: an admitted request, a check, a duration. */
export interface Sample {
  readonly metric: string;
  readonly data: { readonly time: string; readonly value: number; readonly tags: Record<string, string> };
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
  const k6 = findProgram('k6', 'K6');
  if (k6 === undefined) throw new Error('No k6 on PATH or in K6: go install go.k6.io/k6/v2@v2.1.0');
  const variables = Object.entries({ ...env, SCRIPT: name }).flatMap(([key, value]) => [
    '-e',
    `${key}=${value}`,
  ]);
  const options = ['--quiet', '--no-usage-report', '--system-tags', 'status,check', '--out', 'json=-'];
  const child = spawn(k6, ['run', ...options, ...variables, SCRIPT], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  process.once('exit', () => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    if (METRICS.test(line)) onSample(JSON.parse(line));
    else if (!line.startsWith('{')) process.stdout.write(`${line}\n`);
  });
  const [[code]] = await Promise.all([once(child, 'exit'), once(lines, 'close')]);
  return code ?? 1;
}
