import type { Revocation, RevocationReason, Revoked } from './revocations.ts';

/** How long a revocation is kept by default: longer than the lifetime of access tokens. */
export const REMEMBERED_MS = 24 * 3_600_000;

/** The Redis channel on which replicas that share a key prefix receive revocations. */
export function revocationChannel(keyPrefix: string): string {
  return `${keyPrefix}:1:revocations`;
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

/** An undone revocation has no `kind`, so that replicas of an older version do not apply it as a revocation. */
export function writeRevocation({ revoked, atMs, untilMs, isUndone, reason }: Revocation): string {
  const kind = isUndone ? { undone: revoked.kind } : { kind: revoked.kind };
  return JSON.stringify({ ...kind, target: formatTarget(revoked), atMs, untilMs, reason });
}

/**
 * Parses a message of the channel: JSON as written by `writeRevocation`, or plain text with the target, as published by hand
 * with `redis-cli`. Undefined for anything else.
 */
export function readRevocation(message: string, nowMs = Date.now()): Revocation | undefined {
  if (!message.startsWith('{')) {
    if (message === '') return undefined;
    return { revoked: readTarget(message), atMs: nowMs, untilMs: nowMs + REMEMBERED_MS };
  }
  const { kind, undone, target, atMs, untilMs, reason } = parsed(message);
  if (typeof target !== 'string' || typeof atMs !== 'number' || typeof untilMs !== 'number') return undefined;
  const named = kind ?? undone;
  const revoked: Revoked = named === 'principal' ? { kind: named, id: target } : readTarget(target);
  if (revoked.kind !== named) return undefined;
  return {
    revoked,
    atMs,
    untilMs,
    ...(kind === undefined ? { isUndone: true } : {}),
    ...(isReason(reason) ? { reason } : {}),
  };
}

function isReason(value: unknown): value is RevocationReason {
  const { why, by } = (value ?? {}) as Partial<Record<keyof RevocationReason, unknown>>;
  return typeof why === 'string' && typeof by === 'string';
}

function parsed(message: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(message) as Record<string, unknown>;
  } catch {
    return {};
  }
}
