#!/usr/bin/env node
/** The `weir` command. Each of its commands is loaded when it is run. */
import { styleText } from 'node:util';
import { Command } from 'commander';
import { FORMATS, GATEWAY_CONFIG, REMEMBERED_HOURS, SETTINGS_FILE } from './commands/choices.ts';
import { limitCommand } from './commands/limit/command.ts';
import { platformCommand } from './commands/platform.ts';
import { printError } from './commands/print.ts';
import { readUrl, withOverrides } from './commands/process/overrides.ts';
import { description, version } from './commands/process/package.ts';
import { replayCommand } from './commands/replay/command.ts';
import type { RevokeOptions } from './commands/revoke/revoke.ts';
import { errorText } from './commands/terminal/problems.ts';

const program = new Command('weir')
  .description(description)
  .version(version)
  // Commander omits the styles where the output is not a terminal or NO_COLOR is set.
  .configureHelp({ styleTitle: (title) => styleText('bold', title, { validateStream: false }) })
  .showHelpAfterError('(weir --help lists the commands)');
program
  .command('init')
  .description('write weir.yaml, limits.yaml and identities.yaml for the API of an OpenAPI document')
  .argument('<document>', 'OpenAPI document, in YAML or JSON')
  .requiredOption('--upstream <url>', 'where the API runs, such as http://127.0.0.1:8000', readUrl)
  .option('--force', 'overwrite files that exist')
  .action(async (document, flags) => (await import('./commands/init/init.ts')).init(document, flags));
withOverrides(program.command('start'), 'service behind the gateway, instead of upstream.url')
  .description('run the gateway')
  .option('-c, --config <file>', 'process settings', SETTINGS_FILE)
  .action(async (flags) => (await import('./commands/start.ts')).start(flags));
program
  .command('check')
  .description('read every configuration file and print all problems; exit 1 when there are any')
  .option('-c, --config <file>', 'process settings', SETTINGS_FILE)
  .option('--connect', 'then try the store, the upstreams, the identity provider and the directory')
  .action(async (flags) => (await import('./commands/check/check.ts')).check(flags));
program
  .command('explain')
  .description('show what a request costs, where the cost is set, who is charged and what is validated')
  .argument('<method>', 'such as GET')
  .argument('<path>', 'path of the request, such as /v3/payments/payees')
  .option('-c, --config <file>', 'process settings', SETTINGS_FILE)
  .option('--token <token>', 'bearer token of the caller')
  .option('--account <id>', 'target Account, as in X-Service-Account')
  .option('--address <ip>', "the client's address, for a public operation")
  .option('--json', 'print JSON')
  .action(async (method, path, flags) =>
    (await import('./commands/prices/explain.ts')).explain(method, path, flags),
  );
program
  .command('operations')
  .description(
    'list all operations with their costs, and mark those without a cost and those that no request can reach',
  )
  .option('-c, --config <file>', 'process settings', SETTINGS_FILE)
  .option('--format <format>', FORMATS.join(', '), 'table')
  .action(async (flags) => (await import('./commands/prices/operations.ts')).operations(flags));
withOverrides(program.command('demo'), 'address for the platform to listen on')
  .description('run the gateway in front of the platform, with everything embedded')
  .option('--no-traffic', 'do not send the few requests a second that the demo sends by default')
  .action(async (flags) => (await import('./commands/demo/demo.ts')).demo(flags));
program.addCommand(platformCommand());
program
  .command('revoke')
  .description('revoke a token, or all tokens issued to a principal until now, at every replica')
  // A token that was pasted here must not be shown, and commander repeats what it does not know.
  .argument('[nothing...]')
  .allowUnknownOption()
  .usage('[--config <file>] (--token <token> | --principal <id>) [--undo], or [--config <file>] --list')
  .option('-c, --config <file>', 'process settings, which name the Redis of the gateways', SETTINGS_FILE)
  .option('--token <token>', 'a token, or sha256:<hex> of one; - reads it from standard input')
  .option('--principal <id>', 'Person or ServiceAccount: all tokens issued to it until now')
  .option(
    '--hours <number>',
    'how long the revocation lasts: choose more than the lifetime of tokens',
    REMEMBERED_HOURS,
  )
  .option('--undo', 'let the token or the principal authenticate again')
  .option('--list', 'list the revocations')
  .option('--json', 'print JSON')
  .action(async (others: string[], flags: RevokeOptions) =>
    (await import('./commands/revoke/revoke.ts')).revoke(others, flags),
  );
program
  .command('usage')
  .description('print the limits of an Account, what it has used, and its recent operations')
  .argument('<id>', 'such as acct_1')
  .option('-c, --config <file>', GATEWAY_CONFIG)
  .option(
    '--url <url>',
    'admin port of any replica, such as http://127.0.0.1:9090; WEIR_ADMIN_TOKEN has its token',
  )
  .option('--ca <file>', 'authority of an https admin port, in PEM')
  .option('--scope <scope>', 'account, organization, person or address', 'account')
  .option('--organization <id>', 'Organization of the Account, where the gateway cannot look it up')
  .option('--account <id>', 'Account of the Person, where the gateway cannot look it up')
  .option('--json', 'print JSON')
  .action(async (id, flags) => (await import('./commands/usage/usage.ts')).usage(id, flags));
program
  .command('top')
  .description('show the Accounts and Organizations with the most points or refusals, at all replicas')
  .option('-c, --config <file>', GATEWAY_CONFIG)
  .option(
    '--url <url>',
    'admin port of any replica, such as http://127.0.0.1:9090; WEIR_ADMIN_TOKEN has its token',
  )
  .option('--ca <file>', 'authority of an https admin port, in PEM')
  .option('--window <window>', '10s, 1m or 10m', '10s')
  .option('--sort <order>', 'points or refused', 'points')
  .option('--once', 'print one table and end')
  .option('--json', 'print JSON and end')
  .action(async (flags) => (await import('./commands/top/top.ts')).top(flags));
program.addCommand(limitCommand());
program.addCommand(replayCommand());
for (const command of program.commands) command.version(version);

try {
  await program.parseAsync();
} catch (error) {
  printError(errorText(error, process.stderr));
  process.exitCode = 1;
}
