import { Type } from 'typebox';
import { digestOfHex } from '../domain/token-digest.ts';
import type { FactKind } from './facts.ts';
import { hostName, id, isMade, matching, parsed, reasonText, timeMs } from './message-bounds.ts';
import type { ChangeReason } from './operator-facts.ts';
import type { Revocation, Revoked } from './revocations.ts';

/** How long a revocation is kept by default: longer than the lifetime of access tokens. */
export const REMEMBERED_MS = 24 * 3_600_000;

const kindOfTarget = Type.Union([Type.Literal('token'), Type.Literal('principal')]);

const asMessage = matching(
  Type.Object({
    kind: Type.Optional(kindOfTarget),
    undone: Type.Optional(kindOfTarget),
    target: id,
    atMs: timeMs,
    untilMs: timeMs,
    reason: Type.Optional(Type.Unknown()),
    replica: Type.Optional(hostName),
  }),
);

const asReason = matching(Type.Object({ why: reasonText, by: reasonText }));

const asTarget = matching(id);

export const REVOCATIONS: FactKind<Revocation> = {
  topic: 'revocations',
  plural: 'revocations',
  metric: 'revocation',
  // Far more than are ever revoked by hand.
  most: 100_000,
  keyOf: ({ revoked }) => targetKey(revoked),
  write: writeRevocation,
  read: readRevocation,
};

/** @param digest SHA-256 of the token, as a latin1 string */
export function tokenKey(digest: string): string {
  return `token ${digest}`;
}

export function principalKey(principal: string): string {
  return `principal ${principal}`;
}

export function targetKey(revoked: Revoked): string {
  return revoked.kind === 'token' ? tokenKey(digestOfHex(revoked.digestHex)) : principalKey(revoked.id);
}

/** The target of a plain message: the hex digest of a token, with or without `sha256:`, or the id of a principal. */
export function readTarget(text: string): Revoked {
  const digest = /^(?:sha256:)?([0-9a-f]{64})$/i.exec(text)?.[1];
  return digest === undefined
    ? { kind: 'principal', id: text }
    : { kind: 'token', digestHex: digest.toLowerCase() };
}

/** `sha256:` followed by the hex digest of a token, or the id of a principal. */
export function formatTarget(revoked: Revoked): string {
  return revoked.kind === 'token' ? `sha256:${revoked.digestHex}` : revoked.id;
}

/** How many digits of a token's digest are shown, and are enough to name it. */
export const SHOWN_DIGITS = 16;

/** The start of a digest, as lists and logs show it. */
export function shownDigest(digestHex: string): string {
  return `sha256:${digestHex.slice(0, SHOWN_DIGITS)}`;
}

/** How lists and logs name what is revoked. */
export function shownTarget(revoked: Revoked) {
  const target = revoked.kind === 'token' ? shownDigest(revoked.digestHex) : revoked.id;
  return { kind: revoked.kind, target };
}

/**
 * An undone revocation has no `kind`, so that replicas of an older version do not apply it as a revocation. Of a revocation and an
 * undoing of the same millisecond, the revocation sorts first, so it wins.
 */
export function writeRevocation({ revoked, atMs, untilMs, isRemoved, reason, replica }: Revocation): string {
  const kind = isRemoved ? { undone: revoked.kind } : { kind: revoked.kind };
  const { why, by } = reason ?? {};
  return JSON.stringify({
    ...kind,
    target: formatTarget(revoked),
    atMs,
    untilMs,
    reason: reason && { why, by },
    replica,
  });
}

/**
 * Parses a message of the channel: JSON as written by `writeRevocation`, or plain text with the target, as published by hand
 * with `redis-cli`. Undefined for anything else.
 */
export function readRevocation(message: string, nowMs: number): Revocation | undefined {
  if (!message.startsWith('{')) {
    const target = asTarget(message);
    if (target === undefined) return undefined;
    return { revoked: readTarget(target), atMs: nowMs, untilMs: nowMs + REMEMBERED_MS };
  }
  const read = asMessage(parsed(message));
  if (read === undefined || !isMade(read.atMs, nowMs)) return undefined;
  const { kind, undone, target, atMs, untilMs, replica } = read;
  const named = kind ?? undone;
  const revoked: Revoked = named === 'principal' ? { kind: named, id: target } : readTarget(target);
  if (revoked.kind !== named) return undefined;
  return {
    revoked,
    atMs,
    untilMs,
    ...(kind === undefined ? { isRemoved: true } : {}),
    ...(replica === undefined ? {} : { replica }),
    ...reasonOf(read.reason),
  };
}

/** A token that was revoked for a reason out of bounds is revoked all the same. */
function reasonOf(given: unknown): { readonly reason?: ChangeReason } {
  const reason = asReason(given);
  return reason === undefined ? {} : { reason };
}
