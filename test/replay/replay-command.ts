import { runWeirHere } from '../fixtures/run-here.ts';
import type { FinishedCommand } from '../fixtures/weir-process.ts';

export function runReplayCommand(...args: readonly string[]): Promise<FinishedCommand> {
  return runWeirHere(['replay', ...args]);
}
