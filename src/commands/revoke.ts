import { lateNote } from '../admin/facts/fact-change.ts';
import { readTries, shownTry, TRIES, triedKey } from '../admin/facts/tries.ts';
import { configurationFiles, loadSettings } from '../config/load.ts';
import { ConfigError } from '../config/problem.ts';
import { FileSource } from '../config/reader/file-source.ts';
import type { Settings } from '../config/settings/settings.ts';
import { exactDuration } from '../domain/duration.ts';
import { recordedFacts, recordFacts } from '../facts/fact-record.ts';
import { NoRoom } from '../facts/facts.ts';
import { formatTarget, REVOCATIONS } from '../facts/revocation-message.ts';
import {
  judgingIdentity,
  LONGEST_TOKEN_CHARACTERS,
  noteOnTarget,
  noteOnUnknown,
  principalTarget,
  TargetRefused,
  tokenTarget,
} from '../facts/revocation-target.ts';
import { Revocations, type Revoked, revoking, undoing } from '../facts/revocations.ts';
import { CommandError } from '../process/failure.ts';
import { openShared } from '../store/open-store.ts';
import {
  type MessageRecord,
  type Published,
  type SharedStore,
  UnknownOutcome,
} from '../store/shared-store.ts';
import { REMEMBERED_HOURS } from './options.ts';
import { print, printError, printJson } from './print.ts';

const MS_PER_HOUR = 3_600_000;

/** A year, as for revocations by the admin port. */
const MOST_HOURS = 8_760;

const NAMES = { token: '--token', principal: '--principal' };

export interface RevokeOptions {
  readonly config: string;
  /** A token, `sha256:` and its digest, or `-` for standard input. */
  readonly token?: string;
  readonly principal?: string;
  readonly hours?: string;
  readonly list?: boolean;
  readonly undo?: boolean;
  readonly json?: boolean;
}

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
      'weir revoke takes no arguments besides its options (yours is not shown, because it may be a token). Nothing was revoked.',
      'Use --token - to give a token on standard input, or --principal ID.',
    );
  }
  const hours = Number(options.hours ?? REMEMBERED_HOURS);
  if (!(hours > 0 && hours <= MOST_HOURS))
    throw new CommandError(`--hours takes a number above 0, and at most ${MOST_HOURS}.`);
  const settings = loadSettings(options.config, process.env);
  const shared = sharedBy(settings, options.config);
  if (options.list) return list(shared, options.json);
  try {
    const revoked = await readTarget(options, input);
    if (options.undo) await withRecord(shared, 'Nothing was undone', (record) => undo(record, revoked));
    else await revokeNow(settings, shared, revoked, hours);
  } catch (error) {
    throw error instanceof TargetRefused ? new CommandError(error.message) : error;
  }
}

/** What is to be revoked. A token is hashed here: from here on nothing knows it. */
async function readTarget(
  { token, principal }: RevokeOptions,
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

function sharedBy({ store }: Settings, config: string): SharedStore {
  const shared = openShared(store);
  if (shared !== undefined) return shared;
  throw new CommandError(
    `${config} names the memory store, and revocations travel through Redis: restart the gateway, or take the ` +
      'token out of the identities file, which is read again while it runs.',
  );
}

async function withRecord<T>(
  shared: SharedStore,
  failure: string,
  use: (record: MessageRecord) => Promise<T>,
  topic: string = REVOCATIONS.topic,
): Promise<T> {
  try {
    return await shared.withRecord(topic, use);
  } catch (error) {
    if (error instanceof CommandError || !(error instanceof Error)) throw error;
    if (error instanceof NoRoom) throw new CommandError(error.message);
    if (error instanceof UnknownOutcome) {
      throw new CommandError(
        `Redis gave no answer (${error.message}), so it may or may not have been changed: weir revoke --list shows what is revoked.`,
      );
    }
    throw new CommandError(`${failure}: Redis does not take the command (${error.message}).`);
  }
}

async function revokeNow(
  settings: Settings,
  shared: SharedStore,
  revoked: Revoked,
  hours: number,
): Promise<void> {
  const note = await noteOn(revoked, settings);
  if (note !== undefined) printError(revoked.kind === 'token' ? `Warning: ${note}` : note);
  const { isLasting, ...published } = await withRecord(shared, 'Nothing was revoked', async (record) => ({
    ...(await recordFacts(record, REVOCATIONS, revoking(revoked, hours * MS_PER_HOUR))),
    isLasting: await record.isLasting(),
  }));
  const what =
    revoked.kind === 'token'
      ? `The token is revoked for ${exactDuration(hours * 3_600)} (${formatTarget(revoked)})`
      : `Every token issued to ${revoked.id} until now is revoked for ${exactDuration(hours * 3_600)}`;
  const received = receivedBy(published, settings.store.kind);
  print(`${what}. ${received} One that starts later receives it then.`);
  if (isLasting === false) {
    print(
      'This Redis keeps no append-only file: a revocation is lost if Redis and every gateway restart at the same time.',
    );
  }
}

async function noteOn(revoked: Revoked, settings: Settings): Promise<string | undefined> {
  const identity = judgingIdentity(settings);
  if (!('file' in identity)) return noteOnTarget(revoked, identity, [], NAMES);
  try {
    const files = configurationFiles(settings, new FileSource());
    const read = await Promise.all([files, ...files.credentials].map((one) => one?.identities?.load() ?? []));
    return noteOnTarget(revoked, identity, read.flat(), NAMES);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return noteOnUnknown(revoked, `${identity.file} cannot be read`);
  }
}

function receivedBy({ received: count, notPublished }: Published, kind: string): string {
  if (notPublished !== undefined) return lateNote(notPublished, 'gateway');
  if (kind === 'cluster') return 'Every gateway that is connected has received it.';
  return `${count} ${count === 1 ? 'gateway has' : 'gateways have'} received it.`;
}

async function undo(record: MessageRecord, revoked: Revoked): Promise<void> {
  const undone = await recordFacts(record, REVOCATIONS, undoing(revoked));
  if (undone.facts.length === 0) {
    const what = revoked.kind === 'token' ? 'This token' : 'This principal';
    throw new CommandError(`${what} is not revoked: weir revoke --list shows what is.`);
  }
  const late = undone.notPublished === undefined ? '' : ` ${lateNote(undone.notPublished, 'gateway')}`;
  print(`${revoked.kind === 'token' ? 'The token' : revoked.id} is no longer revoked.${late}`);
}

async function list(shared: SharedStore, asJson = false): Promise<void> {
  const failure = 'The revocations cannot be read';
  const { facts, clock } = await withRecord(shared, failure, (record) => recordedFacts(record, REVOCATIONS));
  const known = new Revocations(() => clock.nowMs());
  for (const revocation of facts) known.add(revocation);
  const tries = await withRecord(shared, failure, readTries, TRIES);
  const entries = known
    .inForce(clock.nowMs())
    .toSorted((a, b) => a.atMs - b.atMs)
    .map((revocation) => ({
      kind: revocation.revoked.kind,
      target: formatTarget(revocation.revoked),
      at: new Date(revocation.atMs).toISOString(),
      until: new Date(revocation.untilMs).toISOString(),
      lastTried: shownTry(tries.get(triedKey(revocation))),
    }));
  if (asJson) printJson(entries);
  else if (entries.length === 0) print('Nothing is revoked.');
  for (const { kind, target, at, until, lastTried } of asJson ? [] : entries) {
    const tried =
      lastTried === null ? 'not tried since' : `last tried ${lastTried.at} from ${lastTried.from}`;
    print(`${kind.padEnd(9)}  ${target}  revoked ${at}, remembered until ${until}, ${tried}`);
  }
}
