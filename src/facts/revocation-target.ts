import { hash } from 'node:crypto';
import type { Identities } from '../config/files/identities/parse-identities.ts';
import { suggestionOf } from '../config/reader/value-messages.ts';
import { identitySections } from '../config/settings/credentials.ts';
import type { Settings } from '../config/settings/settings.ts';
import { ID_FORMAT, isId } from '../domain/caller.ts';
import { digestOfHex } from '../domain/token-digest.ts';
import type { Revoked } from './revocations.ts';

/** What was given cannot be revoked. No message repeats it, because it may be a token wherever it was written. */
export class TargetRefused extends Error {
  override readonly name = 'TargetRefused';
}

/** What the sender calls the two kinds of target, such as `--token` and `--principal`. */
interface TargetNames {
  readonly token: string;
  readonly principal: string;
}

/** No token is longer: Node takes 16 KiB of header in all. */
export const LONGEST_TOKEN_CHARACTERS = 16_384;

/** A signed token, in the form of RFC 7515: a JSON header in base64url comes first. */
const SIGNED_TOKEN = /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/;

/**
 * The target for a token, or for `sha256:` and the digest of one. Only the digest is kept.
 *
 * @throws TargetRefused also for a shortened digest: hashed as a token, it would revoke nothing
 */
export function tokenTarget(given: string, names: TargetNames): Revoked {
  const token = given.trim().replace(/^bearer\s+/i, '');
  if (token === '' || token.length > LONGEST_TOKEN_CHARACTERS || /\s/.test(token)) {
    throw new TargetRefused(
      `What ${names.token} was given is not a token: it is empty, too long, or has a space in it. Nothing was revoked.`,
    );
  }
  if (!/^sha256:/i.test(token)) return { kind: 'token', digestHex: hash('sha256', token) };
  const digest = /^sha256:([0-9a-f]{64})$/i.exec(token)?.[1];
  if (digest === undefined) {
    throw new TargetRefused(
      `${names.token}: a digest has 64 hex digits after sha256:. A shortened one, as lists show it, names no token. Nothing was revoked.`,
    );
  }
  return { kind: 'token', digestHex: digest.toLowerCase() };
}

/** @throws TargetRefused for what is not an id, or looks like a token */
export function principalTarget(id: string, names: TargetNames): Revoked {
  if (SIGNED_TOKEN.test(id)) {
    throw new TargetRefused(
      `${names.principal} was given what looks like a token: use ${names.token}. Nothing was revoked.`,
    );
  }
  if (!isId(id)) throw new TargetRefused(`${names.principal} takes ${ID_FORMAT}. Nothing was revoked.`);
  return { kind: 'principal', id };
}

/**
 * A note where it is doubtful that a target exists; undefined where it is known.
 *
 * @throws TargetRefused for a principal that does not exist: it may be a token, and must not get into Redis
 */
export function noteOnTarget(
  revoked: Revoked,
  identity: Settings['identity'],
  known: readonly Identities[],
  names: TargetNames,
): string | undefined {
  if (!('file' in identity)) {
    return noteOnUnknown(revoked, `identity.kind is ${identity.kind}, so only the issuer knows them`);
  }
  const hasToken = (digestHex: string) =>
    known.some(({ tokens }) => tokens.get(digestOfHex(digestHex)) !== undefined);
  if (revoked.kind === 'token') {
    if (hasToken(revoked.digestHex) || identity.kind !== 'static') return undefined;
    return `${identity.file} has no such token. Was it copied whole? It is revoked all the same.`;
  }
  if (known.some(({ principals }) => principals.has(revoked.id))) return undefined;
  if (hasToken(hash('sha256', revoked.id))) {
    throw new TargetRefused(`${names.principal} was given a token: use ${names.token}. Nothing was revoked.`);
  }
  const hint = suggestionOf(
    revoked.id,
    known.flatMap(({ principals }) => [...principals.keys()]),
  );
  throw new TargetRefused(
    `The principal is unknown: no token of ${identity.file} belongs to it.${hint} Nothing was revoked.`,
  );
}

/** The provider by which targets are judged: one whose principals, or else whose tokens, are not all in a file, if there is one. */
export function judgingIdentity(settings: Settings): Settings['identity'] {
  const all = identitySections(settings);
  const ofIssuer = all.find((one) => !('file' in one));
  return ofIssuer ?? all.find(({ kind }) => kind === 'api-keys') ?? settings.identity;
}

/** The note for a principal when there is no list of principals to check it against. Undefined for a token. */
export function noteOnUnknown({ kind }: Revoked, why: string): string | undefined {
  return kind === 'token' ? undefined : `Whether there is such a principal is not known here: ${why}.`;
}
