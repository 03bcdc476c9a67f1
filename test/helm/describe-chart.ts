import { describe } from 'vitest';
import { missingTools, whyNotRun } from '../fixtures/helm.ts';

const missing = missingTools();
if (missing.length > 0) console.warn(whyNotRun(missing));

/**
 * A block of tests that need helm, kubeconform and promtool. Without them it is skipped under a name that says so;
 * with WEIR_CHART_TESTS=required, as CI sets it, it fails.
 */
export function describeChart(name: string, tests: () => void): void {
  if (missing.length === 0) describe(name, { timeout: 120_000 }, tests);
  else if (process.env.WEIR_CHART_TESTS === 'required') throw new Error(whyNotRun(missing));
  else describe.skip(`${name}: ${whyNotRun(missing)}`, tests);
}
