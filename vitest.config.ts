import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/setup/temporary.ts', 'test/setup/redis.ts', 'test/setup/postgres.ts'],
    // Most of a test's time is waiting for sockets and processes: on two cores the default of one worker idles.
    maxWorkers: 2,
    // Ends a test that hangs. Ten times what the slowest takes, because the machine may be busy with other work.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    coverage: { provider: 'v8', include: ['src/**'] },
  },
});
