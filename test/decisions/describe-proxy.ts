import { describe, it } from 'vitest';
import type { ProxyRecipe } from '../fixtures/proxies.ts';
import { skipReason } from '../fixtures/skip-reason.ts';

/** A block of tests with a real proxy. Without its program, the block is one skipped test whose name says so. */
export function describeProxy({ name, program, installation }: ProxyRecipe, tests: () => void): void {
  if (program !== undefined) {
    describe(name, { timeout: 60_000 }, tests);
    return;
  }
  const reason = `${name} IS NOT TESTED HERE, because it is not installed: ${installation}`;
  it.skip(skipReason(reason), () => undefined);
}
