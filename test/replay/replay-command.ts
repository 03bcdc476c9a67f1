import { vi } from 'vitest';
import { failureText } from '../../src/commands/failure.ts';
import { replayCommand } from '../../src/commands/replay/command.ts';
import type { FinishedCommand } from '../fixtures/weir-process.ts';

/** Runs `weir replay` in this process: starting one for each call takes seconds on a busy machine. */
export async function runReplayCommand(...args: readonly string[]): Promise<FinishedCommand> {
  let stdout = '';
  let stderr = '';
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    stdout += String(chunk);
    return true;
  });
  const err = vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
    stderr += String(chunk);
    return true;
  });
  let code = 0;
  try {
    await replayCommand().exitOverride().parseAsync(args, { from: 'user' });
    code = Number(process.exitCode ?? 0);
  } catch (error) {
    stderr += `${failureText(error)}\n`;
    code = 1;
  } finally {
    process.exitCode = undefined;
    out.mockRestore();
    err.mockRestore();
  }
  return { code, stdout, stderr };
}
