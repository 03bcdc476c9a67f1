import { describe } from 'vitest';
import { missingTools, whyNotRun } from '../fixtures/helm.ts';
import { skipReason } from '../fixtures/skip-reason.ts';

const missing = missingTools();
const reason = missing.length === 0 ? undefined : skipReason(whyNotRun(missing));

/** A block of tests that need helm, kubeconform and promtool. Without them it is skipped under a name that says so. */
export function describeChart(name: string, tests: () => void): void {
  if (reason === undefined) describe(name, { timeout: 120_000 }, tests);
  else describe.skip(`${name}: ${reason}`, tests);
}
