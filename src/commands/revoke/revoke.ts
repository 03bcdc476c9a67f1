import { loadSettings } from '../../config/load.ts';
import type { Settings } from '../../config/settings/settings.ts';
import {
  formatTarget,
  readRevocation,
  revocationChannel,
  writeRevocation,
} from '../../identity/revocation-message.ts';
import { type Revocation, Revocations, type Revoked } from '../../identity/revocations.ts';
import type { RemoteStoreSettings } from '../../store/redis/channel.ts';
import { type MessageRecord, openRecord } from '../../store/redis/record.ts';
import { REMEMBERED_HOURS } from '../choices.ts';
import { CommandError } from '../failure.ts';
import { print, printError } from '../print.ts';
import { lookUp } from './known.ts';
import { readTargetOptions, type TargetOptions } from './target.ts';

const MS_PER_HOUR = 3_600_000;

export interface RevokeOptions extends TargetOptions {
  readonly config: string;
  readonly hours?: string;
  readonly list?: boolean;
  readonly undo?: boolean;
  readonly json?: boolean;
}

type RemoteSettings = Settings & { readonly store: RemoteStoreSettings & { readonly keyPrefix: string } };

/**
 * `weir revoke`: a token, or what a principal was given until now, no longer authenticates at any replica; or is no longer
 * revoked; or all that is revoked is printed.
 *
 * @param others what was given besides options: a token was pasted there, most likely, so it is not repeated
 */
export async function revoke(
  others: readonly string[],
  options: RevokeOptions,
  input: AsyncIterable<Buffer | string> = process.stdin,
): Promise<void> {
  if (others.length > 0) {
    throw new CommandError(
      'weir revoke takes no other arguments (what was given is not shown: it may be a token). Nothing was revoked.\n' +
        'Use --token - to give a token on standard input, or --principal ID.',
    );
  }
  const hours = Number(options.hours ?? REMEMBERED_HOURS);
  if (!(hours > 0)) throw new CommandError('--hours takes a number above 0.');
  const settings = remoteSettings(options.config);
  if (options.list) {
    await withRecord(settings, 'The revocations cannot be read', (record) =>
      list(record, options.json ?? false),
    );
    return;
  }
  const revoked = await readTargetOptions(options, input);
  if (options.undo) await withRecord(settings, 'Nothing was undone', (record) => undo(record, revoked));
  else await revokeNow(settings, revoked, hours);
}

function remoteSettings(config: string): RemoteSettings {
  const settings = loadSettings(config, process.env);
  const { store } = settings;
  if (store.kind !== 'memory') return { ...settings, store };
  throw new CommandError(
    `${config} names the memory store, and revocations travel through Redis: restart the gateway, or take the ` +
      'token out of the identities file, which is read again while it runs.',
  );
}

async function withRecord<T>(
  { store }: RemoteSettings,
  failure: string,
  use: (record: MessageRecord) => Promise<T>,
): Promise<T> {
  try {
    return await openRecord(store, revocationChannel(store.keyPrefix), use);
  } catch (error) {
    if (error instanceof CommandError || !(error instanceof Error)) throw error;
    throw new CommandError(`${failure}: Redis does not take the command (${error.message}).`);
  }
}

async function revokeNow(settings: RemoteSettings, revoked: Revoked, hours: number): Promise<void> {
  warnOfUnknown(revoked, settings);
  const { received, isLasting } = await withRecord(settings, 'Nothing was revoked', async (record) => {
    const atMs = await record.nowMs();
    const untilMs = Math.ceil(atMs + hours * MS_PER_HOUR);
    const text = writeRevocation({ revoked, atMs, untilMs });
    return { received: await record.publish({ text, untilMs }), isLasting: await record.isLasting() };
  });
  const what = revoked.kind === 'token' ? 'The token' : `What ${revoked.id} was given until now`;
  print(
    `${what} is revoked for ${hours} hours${revoked.kind === 'token' ? ` (${formatTarget(revoked)})` : ''}. ` +
      `${receivedBy(received, settings.store.kind)} One that starts later receives it then.`,
  );
  if (isLasting === false) {
    print(
      'This Redis keeps no append-only file: a revocation is lost if Redis and every gateway restart at the same time.',
    );
  }
}

/** @throws CommandError for a principal that does not exist: it may be a token, and must not get into Redis. */
function warnOfUnknown(revoked: Revoked, settings: Settings): void {
  const knowledge = lookUp(revoked, settings);
  if (knowledge.isKnown) return;
  if (knowledge.isKnown === undefined) {
    if (revoked.kind === 'principal')
      printError(`Whether there is such a principal is not known here: ${knowledge.why}.`);
    return;
  }
  const { file, suggestion, isToken } = knowledge;
  if (revoked.kind === 'token') {
    printError(`Warning: ${file} has no such token. Was it copied whole? It is revoked all the same.`);
    return;
  }
  const hint = suggestion === undefined ? '' : ` Did you mean ${suggestion}?`;
  throw new CommandError(
    isToken
      ? '--principal was given a token: use --token. Nothing was revoked.'
      : `The principal is unknown: no token of ${file} belongs to it.${hint} Nothing was revoked.`,
  );
}

function receivedBy(count: number, kind: string): string {
  if (kind === 'cluster') return 'Every gateway that is connected has received it.';
  return `${count} ${count === 1 ? 'gateway has' : 'gateways have'} received it.`;
}

async function undo(record: MessageRecord, revoked: Revoked): Promise<void> {
  const target = formatTarget(revoked);
  const texts = await record.read(await record.nowMs());
  const replaced = texts.filter((text) => {
    const one = readRevocation(text);
    return one?.revoked.kind === revoked.kind && formatTarget(one.revoked) === target;
  });
  const current = inForce(replaced).find((one) => !one.isUndone);
  if (current === undefined) {
    const what = revoked.kind === 'token' ? 'This token' : 'This principal';
    throw new CommandError(`${what} is not revoked: weir revoke --list shows what is.`);
  }
  // Later than what it undoes, though both may be of one millisecond.
  const atMs = Math.max(await record.nowMs(), current.atMs + 1);
  const { untilMs } = current;
  await record.publish(
    { text: writeRevocation({ revoked, atMs, untilMs, isUndone: true }), untilMs },
    replaced,
  );
  print(`${revoked.kind === 'token' ? 'The token' : revoked.id} is no longer revoked.`);
}

/** What the messages of a record come to, the undone included. */
function inForce(texts: readonly string[]): readonly Revocation[] {
  const revocations = new Revocations();
  for (const text of texts) {
    const revocation = readRevocation(text);
    if (revocation !== undefined) revocations.add(revocation);
  }
  return revocations.remembered();
}

async function list(record: MessageRecord, asJson: boolean): Promise<void> {
  const texts = await record.read(await record.nowMs());
  const entries = inForce(texts)
    .filter(({ isUndone }) => !isUndone)
    .sort((a, b) => a.atMs - b.atMs)
    .map(({ revoked, atMs, untilMs }) => ({
      kind: revoked.kind,
      target: formatTarget(revoked),
      at: new Date(atMs).toISOString(),
      until: new Date(untilMs).toISOString(),
    }));
  if (asJson) print(JSON.stringify(entries, null, 2));
  else if (entries.length === 0) print('Nothing is revoked.');
  for (const { kind, target, at, until } of asJson ? [] : entries)
    print(`${kind.padEnd(9)}  ${target}  revoked ${at}, remembered until ${until}`);
}
