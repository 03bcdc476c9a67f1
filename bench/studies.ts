import type { Bench } from './lab/bench.ts';
import { IS_IMAGE_NODE, NODE } from './lab/machine.ts';

/** Something that is measured, and how it is recorded. */
export interface Study {
  readonly name: string;
  /** What it measures, in a line for `--help`. */
  readonly measures: string;
  /** The section of RESULTS.md that a recorded run replaces, and its title. Studies without one only print. */
  readonly section?: readonly [name: string, title: string];
  /** Rounds by default, and with `--quick`. */
  readonly rounds?: readonly [full: number, quick: number];
  /** Seconds of one measurement, likewise. */
  readonly seconds?: readonly [full: number, quick: number];
  /** The longest that it took on two cores of 2026. */
  readonly minutes: number;
  /** `bench:whole` runs it on these versions: the image's, and the oldest that Weir supports. */
  readonly nodes?: readonly number[];
  /** Leaves all processes on all cores. Otherwise the gateway has one, and everything else the others. */
  readonly sharesCores?: boolean;
  /** Arguments with which `bench:whole` runs it. */
  readonly wholeArgs?: string;
  /** Returns the lines of the section, without title and circumstances. */
  readonly run: (bench: Bench) => Promise<readonly string[]>;
}

/** What is measured by the tests, and not from here. */
export interface TestStudy {
  readonly name: string;
  readonly measures: string;
  readonly minutes: number;
  readonly command: string;
}

export const STUDIES: readonly Study[] = [
  {
    name: 'gateways',
    measures: 'Weir beside other gateways and limiters; words choose contestants and measurements',
    section: IS_IMAGE_NODE
      ? ['gateway', 'Gateways and limiters']
      : [`gateway-node${NODE}`, `Gateways and limiters, Node ${NODE}`],
    rounds: [5, 1],
    seconds: [6, 2],
    minutes: 27,
    nodes: [24, 20],
    wholeArgs: '--rounds 6 --seconds 1',
    run: async (bench) => (await import('./gateways/gateways.ts')).compareGateways(bench),
  },
  {
    name: 'aims',
    measures: 'CPU of a request in the deployments that the aims are about, beside the plain proxy',
    section: [`aims-node${NODE}`, `Aims, Node ${NODE}`],
    rounds: [12, 2],
    minutes: 7,
    nodes: [24, 20],
    run: async (bench) => (await import('./studies/aims.ts')).measureAims(bench),
  },
  {
    name: 'counter',
    measures: 'how exact the counter is and what it costs, beside other counters; words choose parts',
    section: ['counter', 'The counter'],
    rounds: [3, 1],
    minutes: 5,
    run: async (bench) => (await import('./counter/counter.ts')).measureCounter(bench),
  },
  {
    name: 'in-flight',
    measures: 'CPU of a limit on requests in flight, in the gateway and in Redis; fails above the aims',
    section: ['in-flight', 'Requests in flight'],
    rounds: [10, 5],
    minutes: 7,
    run: async (bench) => (await import('./studies/in-flight.ts')).measureInFlight(bench),
  },
  {
    name: 'decide',
    measures: 'latency and CPU of a decision for programs and proxies',
    section: ['decide', 'Decisions for programs and proxies'],
    rounds: [5, 2],
    seconds: [2, 0.5],
    minutes: 3,
    run: async (bench) => (await import('./studies/decide.ts')).measureDecisions(bench),
  },
  {
    name: 'descriptors',
    measures: "Envoy's rate limit service, answered by Weir and by envoyproxy/ratelimit",
    section: ['descriptors', "Envoy's rate limit service"],
    rounds: [5, 2],
    minutes: 1,
    run: async (bench) => (await import('./studies/descriptors.ts')).measureDescriptors(bench),
  },
  {
    name: 'k6',
    measures: 'scripts of k6 that check every response; words name scripts',
    seconds: [20, 3],
    minutes: 3,
    sharesCores: true,
    run: async (bench) => (await import('./k6/run.ts')).runScripts(bench),
  },
  {
    name: 'replay',
    measures: 'lines per second and memory of `weir replay`, beside jq',
    section: ['replay', 'Replaying a log'],
    minutes: 3,
    run: async (bench) => (await import('./replay/replay.ts')).measureReplay(bench),
  },
  {
    name: 'console',
    measures: 'what the open console costs its replica, and how smooth its page is',
    section: ['console', 'The console'],
    rounds: [8, 1],
    seconds: [8, 2],
    minutes: 8,
    run: async (bench) => (await import('./studies/console.ts')).measureConsole(bench),
  },
  {
    name: 'usage',
    measures: 'counting usage and top talkers, in nanoseconds per request',
    section: ['usage', 'Usage and top talkers'],
    rounds: [7, 1],
    minutes: 1,
    run: async (bench) => (await import('./studies/usage.ts')).measureUsage(bench),
  },
  {
    name: 'scale',
    measures:
      'CPU and memory with 1 to 1,000,000 Accounts, leases of 50 replicas, and bytes that docs/scale.md calculates with',
    section: ['scale', 'Scale'],
    rounds: [8, 2],
    minutes: 29,
    run: async (bench) => (await import('./scale/scale.ts')).measureScale(bench),
  },
  {
    name: 'pauses',
    measures:
      'what the slowest requests wait at half load, with one Account and with 200,000, beside the plain proxy',
    section: [`pauses-node${NODE}`, `Pauses, Node ${NODE}`],
    rounds: [12, 2],
    seconds: [4, 2],
    minutes: 12,
    nodes: [24, 20],
    run: async (bench) => (await import('./studies/pauses.ts')).measurePauses(bench),
  },
  {
    name: 'journal',
    measures:
      'how long counts of 1,000,000 owners are missing after Redis was emptied, and CPU of the journal; `recovery` or `cpu` chooses',
    section: ['journal', 'The journal'],
    rounds: [12, 5],
    minutes: 11,
    run: async (bench) => [
      ...(bench.includes('recovery')
        ? ['', ...(await (await import('./journal/recovery.ts')).measureRecovery(bench))]
        : []),
      ...(bench.includes('cpu')
        ? ['', ...(await (await import('./journal/cpu.ts')).measureJournalCpu(bench))]
        : []),
    ],
  },
  {
    name: 'fair',
    measures:
      'who is served when customers ask for three times what the upstream can do, beside other proxies',
    section: ['fair', 'A fair upstream'],
    rounds: [1, 1],
    seconds: [20, 5],
    minutes: 9,
    run: async (bench) => (await import('./fair/fair.ts')).measureFairness(bench),
  },
  {
    name: 'settle',
    measures:
      'points over the limit, and points that leak, while streams settle their costs and everything is killed',
    section: ['settle', 'Settled costs'],
    seconds: [40, 10],
    minutes: 9,
    sharesCores: true,
    run: async (bench) => (await import('./settle/settle.ts')).measureSettling(bench),
  },
  {
    name: 'reading-costs',
    measures: 'CPU of finding what a response of 64 KiB has cost; fails above the aim; words choose bodies',
    section: ['reading-costs', 'Reading what a response has cost'],
    rounds: [40, 3],
    minutes: 15,
    run: async (bench) => (await import('./studies/reading-costs.ts')).measureReadingCosts(bench),
  },
  {
    name: 'clients',
    measures:
      'how many 429s 1,000 clients get that share a limit and use nearly all of it (`kit` or `plain`)',
    section: ['clients', 'Clients that keep within limits'],
    seconds: [180, 90],
    minutes: 5,
    sharesCores: true,
    run: async (bench) => (await import('./studies/clients.ts')).measureClients(bench),
  },
  {
    name: 'http-metrics',
    measures: 'CPU that `metrics.http` adds to a request',
    section: ['http-metrics', 'HTTP metrics by the conventions of OpenTelemetry'],
    rounds: [30, 4],
    minutes: 2,
    run: async (bench) => (await import('./studies/http-metrics.ts')).measureHttpMetrics(bench),
  },
  {
    name: 'operations',
    measures: 'matching one of 1,000 operations and validating a request, in microseconds',
    section: ['operations', 'Matching and validating'],
    rounds: [9, 1],
    minutes: 1,
    run: async (bench) => (await import('./studies/operations.ts')).measureOperations(bench),
  },
  {
    name: 'identity',
    measures: 'finding out who calls, in microseconds; prints only',
    rounds: [7, 1],
    minutes: 1,
    run: async (bench) => (await import('./studies/identity.ts')).measureIdentity(bench),
  },
  {
    name: 'overrides',
    measures: 'what 100,000 overrides cost; prints only',
    minutes: 1,
    run: async (bench) => (await import('./studies/overrides.ts')).measureOverrides(bench),
  },
  {
    name: 'platform',
    measures: 'events and list pages per second of the platform, on each database; prints only',
    minutes: 1,
    run: async (bench) => (await import('./studies/platform.ts')).measurePlatform(bench),
  },
  {
    name: 'hostile',
    measures: 'CPU of inputs that are meant to make the gateway work; words choose inputs',
    section: ['hostile', 'Hostile input'],
    minutes: 3,
    run: async (bench) => (await import('./hostile/hostile.ts')).measureHostileInputs(bench),
  },
  {
    name: 'guard',
    measures: 'fails when a request costs clearly more than it did; CI runs it',
    rounds: [20, 20],
    minutes: 1,
    sharesCores: true,
    run: async (bench) => (await import('./studies/guard.ts')).guard(bench),
  },
  {
    name: 'soak',
    measures: 'two hours of requests while limits change, replicas are replaced and Redis fails over',
    section: ['soak', 'Soak'],
    seconds: [7200, 60],
    minutes: 121,
    sharesCores: true,
    run: async (bench) => (await import('./soak/soak.ts')).soak(bench),
  },
  {
    name: 'database-work',
    measures: 'rows and WAL of PostgreSQL for each event of the platform; prints only',
    minutes: 1,
    nodes: [],
    run: async (bench) => (await import('./studies/database-work.ts')).measureDatabaseWork(bench),
  },
];

export const TEST_STUDIES: readonly TestStudy[] = [
  {
    name: 'faults',
    measures: 'the faults of test/faults, three seconds each, and their effect on requests',
    minutes: 2,
    command: 'npm run bench:faults',
  },
  {
    name: 'share',
    measures: 'limits without a store, with longer outages than `faults` has, whose section it replaces',
    minutes: 3,
    command:
      'WEIR_TEST_OUTAGE_MS=60000 WEIR_WRITE_RESULTS=1 vitest run test/faults/replicas-share-limits.test.ts',
  },
];
