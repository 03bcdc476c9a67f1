import type { Revocation, Revoked } from './revocations.ts';

/** For how long a revocation is remembered where nobody says: longer than access tokens live. */
export const REMEMBERED_MS = 24 * 3_600_000;

/** The Redis channel on which replicas that share a key prefix hear of revocations. */
export function revocationChannel(keyPrefix: string): string {
  return `${keyPrefix}:1:revocations`;
}

/** What a person or a message names: `sha256:` and the hex digest of a token, that digest alone, or a principal. */
export function readTarget(text: string): Revoked {
  const digest = /^(?:sha256:)?([0-9a-f]{64})$/i.exec(text)?.[1];
  return digest === undefined
    ? { kind: 'principal', id: text }
    : { kind: 'token', digestHex: digest.toLowerCase() };
}

export function writeRevocation({ revoked, atMs, untilMs }: Revocation): string {
  const target = revoked.kind === 'token' ? `sha256:${revoked.digestHex}` : revoked.id;
  return JSON.stringify({ kind: revoked.kind, target, atMs, untilMs });
}

/**
 * A message of the channel: JSON as `writeRevocation` writes it, or no more than what is revoked, as somebody at a
 * `redis-cli` would write it. Undefined for anything else.
 */
export function readRevocation(message: string, nowMs = Date.now()): Revocation | undefined {
  if (!message.startsWith('{')) {
    if (message === '') return undefined;
    return { revoked: readTarget(message), atMs: nowMs, untilMs: nowMs + REMEMBERED_MS };
  }
  const { kind, target, atMs, untilMs } = parsed(message);
  if (typeof target !== 'string' || typeof atMs !== 'number' || typeof untilMs !== 'number') return undefined;
  const revoked: Revoked = kind === 'principal' ? { kind, id: target } : readTarget(target);
  return revoked.kind === kind ? { revoked, atMs, untilMs } : undefined;
}

function parsed(message: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(message) as Record<string, unknown>;
  } catch {
    return {};
  }
}
