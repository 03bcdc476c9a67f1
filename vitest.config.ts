import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest, mostly waiting: started last, they would leave the other workers without work. */
const SLOWEST = [
  'test/faults/a-failing-store-',
  'test/commands/the-demo-',
  'test/platform/deliveries-',
  'test/platform/a-crash-',
  'test/platform/a-generated-client-',
  'test/store/topologies',
  'test/faults/a-split-brain-',
  'test/gateway/a-store-that-refuses-',
];

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification) => SLOWEST.some((start) => moduleId.includes(start));
    const sorted = await super.sort(files);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

const PLATFORM = 'test/platform/**/*.test.ts';
const UNITS = ['test/unit/**/*.test.ts', 'test/openapi/**/*.test.ts', 'test/architecture.test.ts'];

export default defineConfig({
  test: {
    // Tests spend much of their time waiting for sockets and processes: two workers leave a third of two cores idle.
    maxWorkers: 3,
    // Ends a test that hangs. Ten times what the slowest takes, because the machine may be busy with other work.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: SlowestFirst },
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
          exclude: [PLATFORM, ...UNITS],
          globalSetup: ['test/setup/temporary.ts', 'test/setup/redis.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'unit',
          include: UNITS,
          globalSetup: ['test/setup/temporary.ts', 'test/setup/redis.ts'],
          // Loading the modules takes longer than most of these tests: the files of one worker share them.
          isolate: false,
        },
      },
    ],
  },
});
