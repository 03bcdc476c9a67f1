import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest, mostly waiting: started last, they would leave the other workers without work. */
const SLOWEST = [
  'test/gateway/what-redis-holds-',
  'test/gateway/edge/connections-',
  'test/gateway/listener/each-phase-',
  'test/gateway/proxy/raw-requests-',
  'test/faults/a-failing-store-',
  'test/commands/the-demo-',
  'test/commands/a-closed-output-',
  'test/gateway/log/no-log-line-',
  'test/gateway/proxy/sigterm-',
  'test/gateway/upstream/transfers-arrive-',
  'test/store/memory',
  'platform/test/the-document-',
  'platform/test/deliveries-',
  'platform/test/a-crash-',
  'platform/test/an-upgrade-',
  'platform/test/every-event-',
  'platform/test/subscriptions-',
  'platform/test/a-generated-client-',
  'test/store/topologies',
  'test/faults/a-split-brain-',
  'test/gateway/a-store-that-refuses-',
];

/** The files of one project after another, because a worker starts again when it changes to another one. */
class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification) => SLOWEST.some((start) => moduleId.includes(start));
    const sorted = await super.sort(files);
    return ['gateway', 'platform', 'unit'].flatMap((name) => {
      const own = sorted.filter(({ project }) => project.name === name);
      return [...own.filter(isSlow), ...own.filter((file) => !isSlow(file))];
    });
  }
}

const PLATFORM = 'platform/test/*.test.ts';
const UNITS = [
  '{,platform/}test/unit/**/*.test.ts',
  'test/openapi/**/*.test.ts',
  'test/architecture.test.ts',
];

export default defineConfig({
  test: {
    // Tests spend much of their time waiting for sockets and processes, so twice as many workers as CI has cores.
    maxWorkers: 4,
    // Loading the modules takes longer than most tests, and PGlite takes seconds: the files of one worker share them. They share no
    // gateway, no platform and no data.
    isolate: false,
    // Ends a test that hangs. Ten times what the slowest takes, because the machine may be busy with other work.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: SlowestFirst },
    coverage: { provider: 'v8', include: ['src/**', 'platform/src/**'] },
    projects: [
      {
        extends: true,
        test: {
          name: 'platform',
          include: [PLATFORM],
          globalSetup: ['test/setup/temporary.ts', 'platform/test/setup/postgres.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'gateway',
          include: ['test/**/*.test.ts'],
          exclude: UNITS,
          globalSetup: ['test/setup/temporary.ts', 'test/setup/redis.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'unit',
          include: UNITS,
          globalSetup: ['test/setup/temporary.ts', 'test/setup/redis.ts'],
        },
      },
    ],
  },
});
