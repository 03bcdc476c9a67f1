import { Command } from 'commander';
import { BLOCK_SCOPES } from '../../facts/blocks.ts';
import { withGateway } from '../options.ts';

const WHY = ['--why <text>', 'the reason, for the audit log'] as const;
const BY = ['--by <name>', 'your name, for the audit log; default: the user who runs the command'] as const;
const FOR = ['--for <time>', 'how long: 30m, 2h, up to 7d', '1h'] as const;

const FORCE = ['--force', 'also for an id that nobody is known to have'] as const;

/** `weir limit set`, `list`, `unset`, `block` and `unblock`. */
export function limitCommand(): Command {
  const command = new Command('limit').description('change limits and block callers while the gateways run');
  const subcommand = (usage: string, description: string) =>
    withGateway(command.command(usage)).description(description);
  subcommand(
    'set <id> <bucket=points...>',
    'set limits of an Account, Organization, principal or address at every replica',
  )
    .requiredOption(...WHY)
    .option(...FOR)
    .option(...BY)
    .option(...FORCE)
    .action(async (id, buckets, flags) => (await import('./limit.ts')).setLimit(id, buckets, flags));
  subcommand('list', 'print the live limits and the blocks')
    .option('--json', 'print JSON')
    .action(async (flags) => (await import('./limit.ts')).listLimits(flags));
  subcommand('unset <id> [bucket]', 'remove live limits: the files apply again')
    .requiredOption(...WHY)
    .option(...BY)
    .action(async (id, bucket, flags) => (await import('./limit.ts')).unsetLimit(id, bucket, flags));
  const blocking = (usage: string, description: string) =>
    subcommand(usage, description)
      .option(
        '--scope <scope>',
        `${BLOCK_SCOPES.join(', ')}; default: address for an IP address, else account`,
      )
      .requiredOption(...WHY)
      .option(...BY);
  blocking(
    'block <id>',
    'refuse all requests of an Account, principal, Organization, address or range of addresses',
  )
    .option(...FOR)
    .option(...FORCE)
    .action(async (id, flags) => (await import('./block.ts')).block(id, flags));
  blocking('unblock <id>', 'admit its requests again').action(async (id, flags) =>
    (await import('./block.ts')).unblock(id, flags),
  );
  return command;
}
