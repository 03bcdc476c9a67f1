import { Command, Option } from 'commander';
import { DatabaseUnavailable } from '../platform/database/unavailable.ts';
import { type ActingAs, callPlatform, PlatformCallError } from '../platform/development/client.ts';
import { CommandError } from './failure.ts';
import { closeOnSignal } from './process/close-on-signal.ts';

/** `weir platform`: the service behind the gateway, and two tools for those who build against its events. */
export function platformCommand(): Command {
  const command = new Command('platform')
    .description(
      'run the platform that the demo puts behind the gateway; see docs/platform.md for its environment',
    )
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 takes a free one', '3000')
    .option('--data <directory>', 'keep the embedded database in this directory instead of in memory')
    .action(platform);
  command.addCommand(
    actingOptions(new Command('trigger'))
      .description('make an event happen, such as Invoice.Paid')
      .argument('<type>', 'any published event type')
      .option('--resource <id>', 'resource of the event; default: a new one')
      .option('--counterparty <account>', 'the other party of an event that is sent to both')
      .addOption(
        new Option('--channel <name>', 'channel of a Notification event').choices(['InApp', 'Email', 'SMS']),
      )
      .action(trigger),
  );
  command.addCommand(
    actingOptions(new Command('listen'))
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
      .action(listenToEvents),
  );
  return command;
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
  if (!URL.canParse(url))
    throw new CommandError(`--url ${url} is not a URL: give one such as http://127.0.0.1:8080`);
  return { url, token, account };
}

async function platform(flags: { host: string; port: string; data?: string }): Promise<void> {
  const port = toPort('--port', flags.port);
  const { startPlatform } = await import('../platform/server.ts');
  const { optionsFromEnv } = await import('../platform/settings.ts');
  const starting = startPlatform({
    host: flags.host,
    port,
    ...optionsFromEnv(process.env),
    ...(flags.data && { database: { kind: 'directory', path: flags.data } as const }),
  });
  const running = await inSentences(starting);
  process.stdout.write(`platform listening on ${running.url}\n`);
  // The demo that started this process waits for the word; it may have gone in the meantime.
  process.send?.({ url: running.url }, undefined, undefined, () => {});
  closeOnSignal(() => running.close());
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
  const triggered = callPlatform(toActingAs(flags), 'POST', '/v3/platform/event-triggers', body);
  const answer = await inSentences(triggered);
  process.stdout.write(`${JSON.stringify(answer, undefined, 2)}\n`);
}

interface ListenFlags extends ActingFlags {
  readonly events: string[];
  readonly scope: string;
  readonly receiverPort: string;
}

async function listenToEvents(flags: ListenFlags): Promise<void> {
  const { listen } = await import('../platform/development/listen.ts');
  const as = toActingAs(flags);
  const port = toPort('--receiver-port', flags.receiverPort);
  const print = (line: string) => process.stdout.write(`${line}\n`);
  const options = { as, subscribedEvents: flags.events, scope: flags.scope, port, print };
  const listener = await inSentences(listen(options));
  print(`listening on ${listener.url} for ${flags.events.join(', ')}; Ctrl-C stops.`);
  closeOnSignal(() => listener.close());
}

function toPort(flag: string, text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new CommandError(`${flag} ${text} is not a port: give a whole number from 0 to 65535`);
}

/** Waits for the platform or for a client of it, whose failures have messages for the user. */
async function inSentences<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const isClear = error instanceof PlatformCallError || error instanceof DatabaseUnavailable;
    throw isClear ? new CommandError(error.message) : error;
  }
}
