#!/usr/bin/env node
/** The `weir` command. Each of its commands is loaded when it is run. */
import { styleText } from 'node:util';
import { Command, Option } from 'commander';
import { limitCommand } from './commands/limit/limit-command.ts';
import {
  FORMATS,
  ID_ARGUMENT,
  parseId,
  REMEMBERED_HOURS,
  withGateway,
  withSettings,
} from './commands/options.ts';
import { printError } from './commands/print.ts';
import { replayCommand } from './commands/replay/replay-command.ts';
import type { RevokeOptions } from './commands/revoke.ts';
import { errorLines, writeSafely } from './commands/terminal/error-lines.ts';
import { description, version } from './config/package.ts';
import { withoutLibraryOutput } from './observe/log/process-output.ts';
import { readUrl, withOverrides } from './process/overrides.ts';

const program = new Command('weir')
  .description(description)
  .version(version)
  // Commander omits the styles where the output is not a terminal or NO_COLOR is set.
  .configureHelp({ styleTitle: (title) => styleText('bold', title, { validateStream: false }) });
program
  .command('init')
  .description('write weir.yaml, limits.yaml and identities.yaml for an API')
  .argument(
    '[document]',
    'OpenAPI document in YAML or JSON: a file or a URL. Default: openapi.yaml or openapi.json of this folder, else the one that the API serves',
  )
  .requiredOption('--upstream <url>', 'required: where the API runs, such as http://127.0.0.1:8000', readUrl)
  .option('--force', 'overwrite files that exist')
  .action(async (document, flags) => (await import('./commands/init/init.ts')).init(document, flags));
withSettings(withOverrides(program.command('start'), 'service behind the gateway, instead of upstream.url'))
  .description('run the gateway')
  .action(async (flags) => (await import('./commands/start.ts')).start(flags));
withSettings(program.command('check'))
  .description('read every configuration file and print all problems; exit 1 if there are any')
  .option(
    '--connect',
    'also test the connections to the store, the journal, the upstreams, the identity provider and the directory',
  )
  .action((flags) =>
    withoutLibraryOutput(async () => (await import('./commands/check/check.ts')).check(flags)),
  );
withSettings(program.command('explain'))
  .description('show what a request costs, where the cost is set, who is charged and what is validated')
  .argument('<method>', 'such as GET')
  .argument('<path>', 'path of the request, such as /v3/payments/payees')
  .option('--token <token>', 'bearer token of the caller')
  .option('--account <id>', 'target Account, as in X-Service-Account')
  .option('--address <ip>', "the client's address, for a public operation")
  .option('--json', 'print JSON')
  .action((method, path, flags) =>
    withoutLibraryOutput(async () =>
      (await import('./commands/costs/explain.ts')).explain(method, path, flags),
    ),
  );
withSettings(program.command('operations'))
  .description(
    'list all operations with their costs, and mark those without a cost and those that no request can reach',
  )
  .option('--format <format>', FORMATS.join(', '), 'table')
  .action(async (flags) => (await import('./commands/costs/operations.ts')).operations(flags));
withOverrides(program.command('demo'), 'address for the platform to listen on')
  .description('run the gateway in front of a demo platform, without any other service')
  .option('--no-traffic', 'do not send the few requests a second that the demo sends by default')
  .option('--log', 'write the log to the terminal instead of a file in .weir')
  .action(async (flags) => (await import('./commands/demo/demo.ts')).demo(flags));
withSettings(program.command('revoke'), 'process settings, which name the Redis of the gateways')
  .description('revoke a token, or all tokens issued to a principal until now, at every replica')
  // A token that was pasted here must not be shown, and commander repeats what it does not know.
  .allowExcessArguments()
  .allowUnknownOption()
  .usage('[--config <file>] (--token <token> | --principal <id>) [--undo], or [--config <file>] --list')
  .option(
    '--token <token>',
    'a token, or sha256: and the 64 hex digits of its digest; - reads it from standard input',
  )
  .option('--principal <id>', 'Person or ServiceAccount: all tokens issued to it until now')
  .option(
    '--hours <number>',
    'how long the revocation lasts: choose more than the lifetime of tokens',
    REMEMBERED_HOURS,
  )
  .option('--undo', 'let the token or the principal authenticate again')
  .option('--list', 'list the revocations')
  .option('--json', 'print JSON')
  .action((flags: RevokeOptions, { args }: Command) =>
    withoutLibraryOutput(async () => (await import('./commands/revoke.ts')).revoke(args, flags)),
  );
withGateway(program.command('usage'))
  .description('print the limits of an Account, what it has used, and its recent operations')
  .argument(...ID_ARGUMENT)
  .option('--scope <scope>', 'account, organization, person or address; default: what has the id')
  .option('--organization <id>', 'Organization of the Account, if the gateway cannot look it up')
  .option('--account <id>', 'Account of the Person, if the gateway cannot look it up')
  .option('--period <period>', 'a past year, month or day from the journal, such as 2026-11')
  .option('--time-zone <name>', 'time zone of that period, such as Europe/Berlin; default: UTC')
  .option('--starts-on <day>', 'day of the month on which that month begins; default: 1')
  .option('--csv', 'print CSV, with --period')
  .option('--json', 'print JSON')
  .action(async (id, flags) => (await import('./commands/usage.ts')).usage(id, flags));
withGateway(program.command('find'))
  .description(
    'find what has an id: an Account, Organization, principal, plan, limit, operation, address or request of the last minutes',
  )
  .argument(...ID_ARGUMENT)
  .option('--json', 'print JSON')
  .action(async (id, flags) => (await import('./commands/find.ts')).find(id, flags));
withGateway(program.command('why'))
  .description(
    'say why a request got a 429 in the last 24 hours: the limit, where it is set, and who had used it up',
  )
  .argument('<request-id>', "X-Request-Id of the response, which is also the problem's requestId", parseId)
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
Examples:
  $ weir why 7e404956-1b1f-406c-af4c-d218953f069c
  $ weir why 7e404956-1b1f-406c-af4c-d218953f069c --url http://127.0.0.1:9090 --json`,
  )
  .action(async (id, flags) => (await import('./commands/why.ts')).why(id, flags));
withGateway(program.command('changes'))
  .description('print what changed at all replicas, newest first')
  .option('--since <time>', '30m, 24h, up to 7d', '24h')
  .option('--json', 'print JSON')
  .action(async (flags) => (await import('./commands/changes.ts')).changes(flags));
withGateway(program.command('health'))
  .description('exit with 0 if the gateway is alive, for the health check of a container')
  .action(async (flags) => (await import('./commands/admin-client.ts')).health(flags));
withGateway(program.command('top'))
  .description(
    'show the Accounts and Organizations with the most points, requests or refusals, at all replicas',
  )
  .option('--window <window>', '10s, 1m or 10m', '10s')
  .option('--by <order>', 'points, requests or refused; default: those with refusals first, then by points')
  .addOption(new Option('--sort <order>').hideHelp())
  .option('--once', 'print one table and exit')
  .option('--json', 'print JSON and exit')
  .action(async (flags) => (await import('./commands/top.ts')).top(flags));
program.addCommand(limitCommand());
program.addCommand(replayCommand());
for (const command of program.commands) command.version(version);
writeSafely(program);

try {
  await program.parseAsync();
} catch (error) {
  printError(...errorLines(error));
  process.exitCode = 1;
}
