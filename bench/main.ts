/** `npm run bench -- STUDY`: runs one of the studies of `studies.ts`, or all of them. */
import { loadavg } from 'node:os';
import { Command } from 'commander';
import { Bench } from './lab/bench.ts';
import { provenance } from './lab/machine.ts';
import { writeSection } from './report/section.ts';
import { STUDIES, type Study, TEST_STUDIES } from './studies.ts';
import { runWhole } from './whole.ts';

interface Options {
  readonly quick: boolean;
  readonly write: boolean;
  readonly rounds?: number;
  readonly seconds?: number;
  readonly only?: string;
  readonly from?: string;
  readonly list: boolean;
}

const LINES = [...STUDIES, ...TEST_STUDIES].map(
  ({ name, measures, minutes }) => `  ${name.padEnd(14)} ${measures} (${minutes} min)`,
);

new Command('bench')
  .description(
    'Measures Weir. Most studies write their section of bench/RESULTS.md; a part of a study prints only.',
  )
  .argument('[study]', 'one of those below', 'gateways')
  .argument('[words...]', 'choose parts of it')
  .option('--quick', 'short and few rounds; prints, and writes nothing unless --write', false)
  .option('--write', 'writes the results although the run is quick or partial', false)
  .option('--rounds <n>', 'rounds, over which medians are taken', Number)
  .option('--seconds <n>', 'length of one measurement', Number)
  .option('--only <words>', 'words that choose parts, separated by commas')
  .option('--from <study>', 'whole: leaves out the studies before this one')
  .option('--list', 'whole: prints what would run', false)
  .addHelpText(
    'after',
    `\nStudies:\n${LINES.join('\n')}\n  ${'whole'.padEnd(14)} all of them, each in a process of its own`,
  )
  .action(async (name: string, rest: readonly string[], options: Options) => {
    const words = [...rest, ...(options.only?.split(',') ?? [])];
    if (name === 'whole') runWhole(words, options.from, options.list);
    else await runStudy(studyOf(name), words, options);
  })
  .parseAsync()
  .catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? messageOf(error) : String(error)}\n`);
    // What a study had opened when it failed must not keep the next one waiting.
    process.exit(1);
  });

/** With its stack if the mistake is this program's. */
function messageOf(error: Error): string {
  return error.constructor === Error ? error.message : (error.stack ?? error.message);
}

function studyOf(name: string): Study {
  const study = STUDIES.find((one) => one.name === name);
  if (study !== undefined) return study;
  throw new Error(`There is no study ${name}:\n${LINES.join('\n')}`);
}

async function runStudy(study: Study, words: readonly string[], options: Options): Promise<void> {
  const { quick, write } = options;
  const either = (both: readonly [number, number] = [1, 1]) => both[quick ? 1 : 0];
  const bench = new Bench({
    rounds: options.rounds ?? either(study.rounds),
    seconds: options.seconds ?? either(study.seconds),
    isQuick: quick,
    isRecorded: write || (!quick && words.length === 0),
    words,
    sharesCores: study.sharesCores ?? false,
  });
  const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
  const circumstances = `${provenance(command)}, machine load ${loadavg()[0]?.toFixed(1)} before.`;
  try {
    const [name, title] = study.section ?? ['', study.name];
    const lines = await study.run(bench);
    const text = [`## ${title}`, '', circumstances, ...lines].join('\n');
    bench.say(text);
    if (bench.isRecorded && study.section !== undefined) writeSection(name, text);
  } finally {
    await bench.end();
  }
}
