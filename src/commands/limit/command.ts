import { Command } from 'commander';
import { withGateway } from '../options.ts';

/** `weir limit set`, `list` and `unset`. */
export function limitCommand(): Command {
  const command = new Command('limit').description('set, list and remove limits while the gateways run');
  const subcommand = (usage: string, description: string) =>
    withGateway(command.command(usage)).description(description);
  subcommand(
    'set <id> <bucket=points...>',
    'set limits of an Account, Organization or address at every replica',
  )
    .requiredOption('--why <text>', 'the reason, for the audit log')
    .option('--for <time>', 'how long: 30m, 2h, up to 7d', '1h')
    .option('--by <name>', 'who sets it; default: the user who runs the command')
    .action(async (id, buckets, flags) => (await import('./limit.ts')).setLimit(id, buckets, flags));
  subcommand('list', 'print the live limits')
    .option('--json', 'print JSON')
    .action(async (flags) => (await import('./limit.ts')).listLimits(flags));
  subcommand('unset <id> [bucket]', 'remove live limits: the files apply again')
    .requiredOption('--why <text>', 'the reason, for the audit log')
    .option('--by <name>', 'who removes it; default: the user who runs the command')
    .action(async (id, bucket, flags) => (await import('./limit.ts')).unsetLimit(id, bucket, flags));
  return command;
}
