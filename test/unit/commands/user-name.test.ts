import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { userName } from '../../../src/commands/limit/limit.ts';

beforeEach(() => vi.stubEnv('SUDO_USER', undefined));
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

it('a user without a name, as in a container, is named by its number', () => {
  expect(userName()).toBe(os.userInfo().username);
  vi.spyOn(os, 'userInfo').mockImplementation(() => {
    throw new Error('A system error occurred: uv_os_get_passwd returned ENOENT (no such file or directory)');
  });
  syncBuiltinESMExports();
  expect(userName()).toBe(`uid ${process.getuid?.()}`);
  vi.stubEnv('SUDO_USER', 'ops');
  expect(userName()).toBe('ops');
});
