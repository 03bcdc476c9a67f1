import { defineConfig } from 'vitest/config';

const PLATFORM = 'test/platform/**/*.test.ts';

export default defineConfig({
  test: {
    // Most of a test's time is waiting for sockets and processes: on two cores the default of one worker idles.
    maxWorkers: 2,
    // Ends a test that hangs. Ten times what the slowest takes, because the machine may be busy with other work.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    coverage: { provider: 'v8', include: ['src/**'] },
    projects: [
      {
        extends: true,
        test: {
          name: 'platform',
          include: [PLATFORM],
          globalSetup: ['test/setup/temporary.ts', 'test/setup/postgres.ts'],
          // PGlite takes seconds to compile and load: the files of one worker share it. They share no platform and no data.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'gateway',
          include: ['test/**/*.test.ts'],
          exclude: [PLATFORM],
          globalSetup: ['test/setup/temporary.ts', 'test/setup/redis.ts'],
        },
      },
    ],
  },
});
