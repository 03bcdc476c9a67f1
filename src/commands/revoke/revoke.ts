import { configurationFiles, loadSettings } from '../../config/load.ts';
import { ConfigError } from '../../config/problem.ts';
import { FileSource } from '../../config/reader/file-source.ts';
import type { Settings } from '../../config/settings/settings.ts';
import { formatTarget, revocationChannel } from '../../identity/revocation-message.ts';
import { publishRevocation, publishUndoing, recordedRevocations } from '../../identity/revocation-record.ts';
import {
  judgingIdentity,
  knownTogether,
  LONGEST_TOKEN_CHARACTERS,
  noteOnTarget,
  noteOnUnknown,
  principalTarget,
  TargetRefused,
  tokenTarget,
} from '../../identity/revocation-target.ts';
import type { Revoked } from '../../identity/revocations.ts';
import type { RemoteStoreSettings } from '../../store/redis/channel.ts';
import { type MessageRecord, openRecord } from '../../store/redis/record.ts';
import { REMEMBERED_HOURS } from '../choices.ts';
import { CommandError } from '../failure.ts';
import { print, printError } from '../print.ts';

const MS_PER_HOUR = 3_600_000;

const NAMES = { token: '--token', principal: '--principal' };

/** What a person names on the command line. */
interface TargetOptions {
  /** A token, `sha256:` and its digest, or `-` for standard input. */
  readonly token?: string;
  readonly principal?: string;
}

export interface RevokeOptions extends TargetOptions {
  readonly config: string;
  readonly hours?: string;
  readonly list?: boolean;
  readonly undo?: boolean;
  readonly json?: boolean;
}

type RemoteSettings = Settings & { readonly store: RemoteStoreSettings & { readonly keyPrefix: string } };

/**
 * `weir revoke`: a token, or every token issued to a principal until now, no longer authenticates at any replica; or is no longer
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
      'weir revoke takes no arguments besides its options (yours is not shown, because it may be a token). Nothing was revoked.\n' +
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
  try {
    const revoked = await readTargetOptions(options, input);
    if (options.undo) await withRecord(settings, 'Nothing was undone', (record) => undo(record, revoked));
    else await revokeNow(settings, revoked, hours);
  } catch (error) {
    throw error instanceof TargetRefused ? new CommandError(error.message) : error;
  }
}

/** What is to be revoked. A token is hashed here: from here on nothing knows it. */
async function readTargetOptions(
  { token, principal }: TargetOptions,
  input: AsyncIterable<Buffer | string>,
): Promise<Revoked> {
  if ((token === undefined) === (principal === undefined)) {
    throw new CommandError('weir revoke takes either --token or --principal.');
  }
  if (token === undefined) return principalTarget(principal ?? '', NAMES);
  return tokenTarget(token === '-' ? await readInput(input) : token, NAMES);
}

async function readInput(input: AsyncIterable<Buffer | string>): Promise<string> {
  let text = '';
  for await (const chunk of input) {
    text += String(chunk);
    if (text.length > 2 * LONGEST_TOKEN_CHARACTERS) break;
  }
  return text;
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
  const note = noteOn(revoked, settings);
  if (note !== undefined) printError(revoked.kind === 'token' ? `Warning: ${note}` : note);
  const { received, isLasting } = await withRecord(settings, 'Nothing was revoked', async (record) => ({
    ...(await publishRevocation(record, revoked, hours * MS_PER_HOUR)),
    isLasting: await record.isLasting(),
  }));
  const what = revoked.kind === 'token' ? 'The token' : `Every token issued to ${revoked.id} until now`;
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

function noteOn(revoked: Revoked, settings: Settings): string | undefined {
  const identity = judgingIdentity(settings);
  if (!('file' in identity)) return noteOnTarget(revoked, identity, knownTogether([]), NAMES);
  try {
    const files = configurationFiles(settings, new FileSource());
    const read = [files, ...files.credentials].flatMap((one) => one?.identities?.read() ?? []);
    return noteOnTarget(revoked, identity, knownTogether(read), NAMES);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return noteOnUnknown(revoked, `${identity.file} cannot be read`);
  }
}

function receivedBy(count: number, kind: string): string {
  if (kind === 'cluster') return 'Every gateway that is connected has received it.';
  return `${count} ${count === 1 ? 'gateway has' : 'gateways have'} received it.`;
}

async function undo(record: MessageRecord, revoked: Revoked): Promise<void> {
  if ((await publishUndoing(record, revoked)) === undefined) {
    const what = revoked.kind === 'token' ? 'This token' : 'This principal';
    throw new CommandError(`${what} is not revoked: weir revoke --list shows what is.`);
  }
  print(`${revoked.kind === 'token' ? 'The token' : revoked.id} is no longer revoked.`);
}

async function list(record: MessageRecord, asJson: boolean): Promise<void> {
  const entries = (await recordedRevocations(record))
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
