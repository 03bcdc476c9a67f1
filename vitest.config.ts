import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/setup/temporary.ts', 'test/setup/redis.ts', 'test/setup/postgres.ts'],
    // Most of a test's time is waiting for sockets and processes: on two cores the default of one worker idles.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // The machine may be busy with other work.
    expect: { poll: { timeout: 10_000 } },
    coverage: { provider: 'v8', include: ['src/**'] },
  },
});
