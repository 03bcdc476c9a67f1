import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest, the longest first: started last, they would leave the other workers without work. */
const SLOWEST = [
  'test/gateway/what-redis-',
  'test/store/journal/more-is-',
  'test/identity/a-bad-',
  'test/store/journal/counting-',
  'test/commands/the-demo-',
  'test/model/the-journal-',
  'test/gateway/a-lost-',
  'platform/test/one-process-',
  'platform/test/an-upgrade-',
  'test/gateway/console/the-console-',
  'test/faults/replicas-share-',
  'test/unit/config/identities-apart',
  'test/gateway/console/a-table-',
  'test/gateway/console/a-status-',
  'test/gateway/console/old-figures-',
  'test/identity/keys-follow-',
  'test/gateway/proxy/a-connection-has-',
  'test/store/journal/owners-',
  'test/gateway/a-store-that-refuses-',
  'test/decisions/programs/every-replica-',
  'test/commands/check-tries-',
  'test/gateway/blocked-callers-',
  'test/gateway/proxy/raw-requests-',
  'test/gateway/console/a-loss-',
  'test/gateway/strangers-',
  'test/store/memory',
  'test/gateway/console/every-page-',
  'platform/test/the-reference-',
  'platform/test/a-generated-',
  'test/gateway/proxy/long-transfers-',
  'test/store/topologies',
];

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = SLOWEST.findIndex((start) => moduleId.includes(start));
      return place === -1 ? SLOWEST.length : place;
    };
    const sorted = await super.sort(files);
    return sorted.sort((one, other) => placeOf(one) - placeOf(other));
  }
}

export default defineConfig({
  test: {
    // Tests spend a third of their time waiting for sockets and processes, so two cores are busy with four workers. With more, tests time out.
    maxWorkers: Math.max(4, availableParallelism()),
    // Tests that run side by side in one file do nothing but wait for time-outs.
    maxConcurrency: 40,
    // Loading the modules takes longer than most tests, and PGlite takes seconds: the files of one worker share them. They share no
    // gateway, no platform and no data.
    isolate: false,
    // PGlite would be compiled a second time, for speed: platform/test/fixtures/databases.ts. CI runs WebAssembly as users do.
    execArgv: process.env.WEIR_TEST_CASES === 'all' ? [] : ['--liftoff-only'],
    // The modules of the last run are not transformed again unless they have changed.
    experimental: { fsModuleCache: true },
    // Periods of the program pass five times faster: src/domain/pace.ts.
    env: { WEIR_TEST_PACE: process.env.WEIR_TEST_PACE ?? '5' },
    // Ends a test that hangs. Ten times what the slowest takes, because the machine may be busy with other work.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: SlowestFirst },
    coverage: { provider: 'v8', include: ['src/**', 'platform/src/**'] },
    include: ['test/**/*.test.ts', 'platform/test/**/*.test.ts'],
    globalSetup: ['test/setup/temporary.ts', 'test/setup/redis.ts', 'platform/test/setup/postgres.ts'],
  },
});
