/** `npm run bench:counter`: how exact the counter is, and what it costs, beside what people would take instead. */
import { Command } from 'commander';
import { startRedisServer } from '../../test/fixtures/redis-server.ts';
import { leastUseful } from '../../test/store/least-useful.ts';
import { measureAccuracy } from './accuracy.ts';
import { measureCluster } from './cluster.ts';
import { measureFaults } from './faults.ts';
import { writeCounterReport } from './report.ts';
import { measureScript } from './script-cost.ts';
import { measureThroughput } from './throughput.ts';

const PARTS = ['accuracy', 'least-useful', 'faults', 'throughput', 'cluster', 'script'];
/** Patterns in the search for the least useful one. */
const TRIES = 5000;

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
  const least = wants('least-useful') ? await leastUseful(TRIES, Date.now() % 1_000_000) : undefined;
  const faults = wants('faults') ? await measureFaults() : [];
  const throughput = wants('throughput') ? await measureThroughput(server.url) : [];
  const cluster = wants('cluster') ? await measureCluster() : [];
  const { costs, sizes } = wants('script') ? await measureScript(server.url) : { costs: [], sizes: [] };
  if (least !== undefined && only === undefined) {
    writeCounterReport(
      { accuracy, least, tries: TRIES, faults, throughput, cluster, costs, sizes },
      'npm run bench:counter',
    );
  }
  for (const { pattern, answerMs, verdicts } of accuracy) console.log(pattern, answerMs, verdicts);
  if (least !== undefined) console.log('least useful', least.share, least.bursts);
  for (const table of [faults, throughput, cluster, costs, sizes]) if (table.length > 0) console.table(table);
} finally {
  await server.stop();
}
