#!/usr/bin/env node
/** `weir-platform`: the service behind the gateway, and two tools for those who build against its events. */
import { readFileSync } from 'node:fs';
import { styleText } from 'node:util';
import { Command, Option } from 'commander';
import { type ActingAs, callPlatform } from './development/client.ts';
import { closeOnSignal } from './program/close-on-signal.ts';
import { failureLines, isHttpUrl, OptionError } from './program/failure.ts';
import { print, printable, printError } from './program/print.ts';

const { version, description } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { readonly version: string; readonly description: string };

const program = new Command('weir-platform')
  .description(`${description}; see docs/platform.md for its environment`)
  // Commander omits the styles where the output is not a terminal or NO_COLOR is set.
  .configureHelp({ styleTitle: (title) => styleText('bold', title, { validateStream: false }) })
  .configureOutput({
    // Commander's errors repeat the arguments, and may end with a suggestion on a separate line.
    outputError(text, write) {
      const lines = text.replace(/\n$/, '').split(/\n(?=\(Did you mean )/);
      write(lines.map((line) => `${printable(line)}\n`).join(''));
    },
  })
  .showHelpAfterError('(weir-platform --help lists the commands)')
  .option('--host <address>', 'address to listen on', '127.0.0.1')
  .option('--port <number>', 'port to listen on; 0 takes a free one', '3000')
  .option('--data <directory>', 'keep the embedded database in this directory instead of in memory')
  .allowExcessArguments(false)
  .action(serve);
actingOptions(program.command('trigger'))
  .description('make an event happen, such as Invoice.Paid')
  .argument('<type>', 'any published event type')
  .option('--resource <id>', 'resource of the event; default: a new one')
  .option('--counterparty <account>', 'the other party of an event that is sent to both')
  .addOption(
    new Option('--channel <name>', 'channel of a Notification event').choices(['InApp', 'Email', 'SMS']),
  )
  .action(trigger);
actingOptions(program.command('listen'))
  .description('receive events on this machine, verify their signatures and print them')
  .option('--events <entries...>', 'event types to subscribe to', ['*'])
  .addOption(
    new Option(
      '--scope <type>',
      'subscribe to the events of the Account, of its Organization, or of the Person',
    )
      .choices(['Account', 'Organization', 'Person'])
      .default('Account'),
  )
  .option('--receiver-port <number>', 'port of the receiver; 0 takes a free one', '0')
  .action(listenToEvents);
for (const command of [program, ...program.commands]) command.version(version);

try {
  await program.parseAsync();
} catch (error) {
  printError(...failureLines(error));
  process.exitCode = 1;
}

interface ActingFlags {
  readonly url: string;
  readonly token: string;
  readonly account?: string;
}

function actingOptions(command: Command): Command {
  return command
    .option('--url <url>', 'where the gateway listens', 'http://127.0.0.1:8080')
    .addOption(
      new Option('--token <token>', 'bearer token or API key').env('WEIR_TOKEN').default('demo-person'),
    )
    .option('--account <id>', "target Account (X-Service-Account); default: the caller's own");
}

function toActingAs({ url, token, account }: ActingFlags): ActingAs {
  // `localhost:8080` is a URL, with the scheme `localhost:`.
  if (!isHttpUrl(url))
    throw new OptionError(`--url ${url} is not an http or https URL: give one such as http://127.0.0.1:8080`);
  const { username, password } = new URL(url);
  if (username || password)
    throw new OptionError('--url must have no user name or password: the gateway takes a --token');
  checkHeaderValue('--token', token);
  checkHeaderValue('--account', account);
  return { url, token, account };
}

/** Throws an OptionError for a value that no header can have, such as one with a line break or an ellipsis. */
function checkHeaderValue(flag: string, value = ''): void {
  try {
    new Headers({ value });
  } catch {
    throw new OptionError(`${flag} ${value} has a character that cannot be sent: give it as it was issued`);
  }
}

async function serve(flags: { host: string; port: string; data?: string }): Promise<void> {
  const port = toPort('--port', flags.port);
  if (flags.data === '') throw new OptionError('--data is empty: give a directory');
  const { startPlatform } = await import('./server.ts');
  const { optionsFromEnv } = await import('./settings.ts');
  const starting = startPlatform({
    host: flags.host,
    port,
    ...optionsFromEnv(process.env),
    ...(flags.data && { database: { kind: 'directory', path: flags.data } as const }),
  });
  closeOnSignal(starting);
  const running = await starting;
  // The demo that started this process waits for this message. It may have ended in the meantime.
  if (process.send !== undefined) process.send({ url: running.url }, undefined, undefined, () => {});
  else print(`platform listening on ${running.url}`);
}

interface TriggerFlags extends ActingFlags {
  readonly resource?: string;
  readonly counterparty?: string;
  readonly channel?: string;
}

async function trigger(type: string, flags: TriggerFlags): Promise<void> {
  const body = {
    type,
    ...(flags.counterparty && { counterpartyAccountId: flags.counterparty }),
    ...(flags.resource && { resourceId: flags.resource }),
    ...(flags.channel && { channel: flags.channel }),
  };
  const answer = await callPlatform(toActingAs(flags), 'POST', '/v3/platform/event-triggers', body);
  print(...JSON.stringify(answer, undefined, 2).split('\n'));
}

interface ListenFlags extends ActingFlags {
  readonly events: string[];
  readonly scope: string;
  readonly receiverPort: string;
}

async function listenToEvents(flags: ListenFlags): Promise<void> {
  const { listen } = await import('./development/listen.ts');
  const as = toActingAs(flags);
  const port = toPort('--receiver-port', flags.receiverPort);
  const starting = listen({ as, subscribedEvents: flags.events, scope: flags.scope, port, print });
  closeOnSignal(starting);
  const listener = await starting;
  print(`listening on ${listener.url} for ${flags.events.join(', ')}; Ctrl-C stops.`);
}

function toPort(flag: string, text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new OptionError(`${flag} ${text} is not a port: give a whole number from 0 to 65535`);
}
