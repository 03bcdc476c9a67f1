import { Command } from 'commander';
import { BLOCK_SCOPES } from '../../facts/blocks.ts';
import { ID_ARGUMENT, withGateway } from '../options.ts';

const WHY = ['--why <text>', 'required: the reason, for the audit log'] as const;
const BY = ['--by <name>', 'your name, for the audit log; default: the user who runs the command'] as const;
const FOR = ['--for <time>', 'how long: 30m, 2h, up to 7d', '1h'] as const;

const FORCE = ['--force', 'also for an id that nobody is known to have'] as const;

/** `weir limit set`, `list`, `unset`, `block` and `unblock`. */
export function limitCommand(): Command {
  const command = new Command('limit').description('change limits and block callers while the gateways run');
  const subcommand = (usage: string, description: string) =>
    withGateway(command.command(usage)).description(description);
  subcommand('set', 'set limits of an Account, Organization, principal or address at every replica')
    .argument(...ID_ARGUMENT)
    .argument('<bucket=points...>', 'such as account-read=5000')
    .requiredOption(...WHY)
    .option(...FOR)
    .option(...BY)
    .option(...FORCE)
    .action(async (id, buckets, flags) => (await import('./limit.ts')).setLimit(id, buckets, flags));
  subcommand('list', 'print the live limits and the blocks')
    .option('--json', 'print JSON')
    .action(async (flags) => (await import('./limit.ts')).listLimits(flags));
  subcommand('unset', 'remove live limits: the files apply again')
    .argument(...ID_ARGUMENT)
    .argument('[bucket]', 'such as account-read; default: every live limit of this id')
    .requiredOption(...WHY)
    .option(...BY)
    .action(async (id, bucket, flags) => (await import('./limit.ts')).unsetLimit(id, bucket, flags));
  const blocking = (usage: string, description: string, defaultScope: string) =>
    subcommand(usage, description)
      .argument(...ID_ARGUMENT)
      .option('--scope <scope>', `${BLOCK_SCOPES.join(', ')}; default: ${defaultScope}`)
      .requiredOption(...WHY)
      .option(...BY);
  blocking(
    'block',
    'refuse all requests of an Account, principal, Organization, address or range of addresses',
    'address for an IP address, else account',
  )
    .option(...FOR)
    .option(...FORCE)
    .action(async (id, flags) => (await import('./block.ts')).block(id, flags));
  blocking('unblock', 'admit its requests again', 'every scope in which the id is blocked').action(
    async (id, flags) => (await import('./block.ts')).unblock(id, flags),
  );
  return command;
}
