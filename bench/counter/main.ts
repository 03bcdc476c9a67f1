/** `npm run bench:counter`: how exact the counter is, and what it costs, beside what people would take instead. */
import { Command } from 'commander';
import { startRedisServer } from '../../test/fixtures/redis-server.ts';
import { leastUsefulBursts, leastUsefulGroups } from '../../test/store/least-useful.ts';
import { measureAccuracy } from './accuracy.ts';
import { measureCluster } from './cluster.ts';
import { measureFaults } from './faults.ts';
import { type LeastUseful, leastUsefulText } from './least-useful-text.ts';
import { writeCounterReport } from './report.ts';
import { measureScript } from './script-cost.ts';
import { measureThroughput } from './throughput.ts';

const PARTS = ['accuracy', 'least-useful', 'faults', 'throughput', 'cluster', 'script'];
/** Random patterns in the search for the least useful one. */
const TRIES = { bursts: 5000, groups: 1000 };

const program = new Command('bench:counter')
  .description('Measures the counter beside others, and writes its section of bench/RESULTS.md.')
  .option('--only <part>', `one of ${PARTS.join(', ')}; prints without writing`)
  .parse();

const { only } = program.opts<{ only?: string }>();
if (only !== undefined && !PARTS.includes(only)) {
  program.error(`--only takes one of ${PARTS.join(', ')}, not ${only}`);
}

const server = await startRedisServer();
try {
  const wants = (part: string) => only === undefined || only === part;
  const accuracy = wants('accuracy') ? await measureAccuracy(server.url) : [];
  const least = wants('least-useful') ? await measureLeastUseful() : undefined;
  const faults = wants('faults') ? await measureFaults() : [];
  const throughput = wants('throughput') ? await measureThroughput(server.url) : [];
  const cluster = wants('cluster') ? await measureCluster() : [];
  const { costs, sizes } = wants('script') ? await measureScript(server.url) : { costs: [], sizes: [] };
  if (least !== undefined && only === undefined) {
    writeCounterReport(
      { accuracy, least, faults, throughput, cluster, costs, sizes },
      'npm run bench:counter',
    );
  }
  for (const { pattern, answerMs, verdicts } of accuracy) console.log(pattern, answerMs, verdicts);
  if (least !== undefined) console.log(leastUsefulText(least));
  for (const table of [faults, throughput, cluster, costs, sizes]) if (table.length > 0) console.table(table);
} finally {
  await server.stop();
}

async function measureLeastUseful(): Promise<LeastUseful> {
  const seed = Date.now() % 1_000_000;
  const bursts = await leastUsefulBursts(TRIES.bursts, seed);
  const groups = await leastUsefulGroups(TRIES.groups, seed);
  return { bursts, groups, tries: TRIES };
}
