/** `npm run bench`: Weir beside what people would pick instead, on one machine in one run. */
import { Command } from 'commander';
import { runBenchmark } from './run.ts';

new Command('bench')
  .description(
    'Measures Weir beside other gateways and limiters; writes bench/RESULTS.md and bench/results/.',
  )
  .option(
    '--quick',
    'short and few rounds: about two minutes; prints, and writes nothing unless --write',
    false,
  )
  .option('--write', 'write the results although the run is quick', false)
  .option('--rounds <n>', 'rounds of each measurement; medians are taken over them', Number)
  .option('--seconds <n>', 'length of one measurement', Number)
  .option('--only <names>', 'contestants whose name contains one of these words, separated by commas')
  .option('--measure <names>', 'throughput, refused, latency, memory, window, scaling; separated by commas')
  .action(runBenchmark)
  .parseAsync()
  .catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
