import { Command, Option } from 'commander';
import { FORMATS } from '../../replay/input/formats.ts';
import { RETRIES, SETTINGS_FILE } from '../options.ts';

/** `weir replay` and its options. */
export function replayCommand(): Command {
  return new Command('replay')
    .description('show what other limits or costs would have done to the requests of an access log')
    .argument('[files...]', 'files of one log, plain or gzip, merged by time; default: standard input')
    .option('--limits <file>', 'limits to count with; default: the limits of the process settings')
    .option(
      '-c, --config <file>',
      `process settings, which name the operations and the limits; default: ${SETTINGS_FILE}, if this folder has one`,
    )
    .option('--operations <file>', 'OpenAPI document with the costs')
    .option(
      '--plan <account=plan>',
      'count an Account with a plan of the limits, such as acct_1=pro; may be repeated',
      (text: string, given: readonly string[] = []) => [...given, text],
    )
    .option(
      '--suggest <share>',
      'print the smallest limits found that refuse at most this share, such as 0.1%',
    )
    .option(
      '--confidence <share>',
      'how likely suggested limits are to refuse no larger share on another day; default: 95%, 0% considers only the log',
    )
    .addOption(
      new Option(
        '--retries <assumption>',
        'how to count the retries of refused clients: none counts every line, drop leaves out those that the log ' +
          'refused, after also repeats the requests that the replay refuses',
      )
        .choices(RETRIES)
        .default('none'),
    )
    .addOption(new Option('--format <format>', 'format of the log; default: weir').choices(FORMATS))
    .option('--map <fields>', 'fields of the log, such as account=.jwt.sub,path=.uri')
    .option(
      '--account-pattern <regex>',
      "RE2 expression that finds the Account in a line: its group 'account', or its first group",
    )
    .option('--rows <number>', 'number of buckets to list', '20')
    .option('--max-refused <share>', 'exit with 2 if a larger share of the requests is refused, such as 0.1%')
    .option('--report <file>', 'write a report to this file, as one HTML page')
    .option('--json', 'print JSON')
    .action(async (files, flags) => (await import('./replay-log.ts')).replay(files, flags));
}
