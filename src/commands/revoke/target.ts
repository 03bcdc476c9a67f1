import { hash } from 'node:crypto';
import { ID_FORMAT, ID_PATTERN } from '../../config/files/identities-schema.ts';
import type { Revoked } from '../../identity/revocations.ts';
import { CommandError } from '../failure.ts';

/** What a person names on the command line. */
export interface TargetOptions {
  /** A token, `sha256:` and its digest, or `-` for standard input. */
  readonly token?: string;
  readonly principal?: string;
}

/** No token is longer: Node takes 16 KiB of header in all. */
const LONGEST_TOKEN_CHARACTERS = 16_384;

const ID = new RegExp(ID_PATTERN);

/** A signed token, in the form of RFC 7515: a JSON header in base64url comes first. */
const SIGNED_TOKEN = /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/;

/**
 * What is to be revoked. A token is hashed here: from here on nothing knows it. No message repeats what was given, because
 * it may be a token wherever it was written.
 *
 * @throws CommandError
 */
export async function readTargetOptions(
  { token, principal }: TargetOptions,
  input: AsyncIterable<Buffer | string>,
): Promise<Revoked> {
  if ((token === undefined) === (principal === undefined)) {
    throw new CommandError('weir revoke takes either --token or --principal.');
  }
  if (token !== undefined) return tokenOf(token === '-' ? await readInput(input) : token);
  const id = principal ?? '';
  if (SIGNED_TOKEN.test(id)) {
    throw new CommandError(
      '--principal was given what looks like a token: use --token. Nothing was revoked.',
    );
  }
  if (!ID.test(id)) throw new CommandError(`--principal takes ${ID_FORMAT}. Nothing was revoked.`);
  return { kind: 'principal', id };
}

function tokenOf(given: string): Revoked {
  const token = given.trim().replace(/^bearer\s+/i, '');
  if (token === '' || token.length > LONGEST_TOKEN_CHARACTERS || /\s/.test(token)) {
    throw new CommandError(
      'What --token was given is not a token: it is empty, too long, or has a space in it. Nothing was revoked.',
    );
  }
  const digest = /^sha256:([0-9a-f]{64})$/i.exec(token)?.[1];
  return { kind: 'token', digestHex: digest?.toLowerCase() ?? hash('sha256', token) };
}

async function readInput(input: AsyncIterable<Buffer | string>): Promise<string> {
  let text = '';
  for await (const chunk of input) {
    text += String(chunk);
    if (text.length > 2 * LONGEST_TOKEN_CHARACTERS) break;
  }
  return text;
}
