import { isMapping } from '../../config/reader/schema-node.ts';
import { REMEMBERED_MS } from '../../facts/revocation-message.ts';
import { principalTarget, TargetRefused, tokenTarget } from '../../facts/revocation-target.ts';
import type { Revoked } from '../../facts/revocations.ts';
import { ActionRefused, readDuration, readReason } from '../action.ts';

/** The members of the request that name a target. */
export const TARGET_NAMES = { token: 'token', principal: 'principal' };

/** Longer than tokens live: a principal that is refused for good belongs in no identities file. */
const LONGEST_MS = 365 * 86_400_000;

const MEMBERS = ['token', 'principal', 'for', 'why', 'by'];

/**
 * Reads `{"token": "…", "for": "24h", "why": "leaked", "by": "alice"}`, or the same with `principal`. No message repeats what was
 * sent, because any of it may be a token.
 *
 * @throws ActionRefused
 */
export function readRevocationRequest(body: unknown) {
  if (!isMapping(body) || Object.keys(body).some((member) => !MEMBERS.includes(member))) {
    throw new ActionRefused(
      'Send a JSON object with token or principal, why and, if you like, by and for: {"principal": "person_1", "why": "left"}.',
    );
  }
  const { token, principal, for: duration, why, by } = body;
  const reason = readReason(why, by);
  const forMs = duration === undefined ? REMEMBERED_MS : readDuration(duration, LONGEST_MS);
  if (forMs === undefined) throw new ActionRefused('for: must be a time such as 2h or 7d, and at most 365d.');
  return { revoked: targetOrRefusal(() => readTarget(token, principal)), forMs, reason };
}

/** What `read` returns; throws an ActionRefused where `read` throws a TargetRefused. */
export function targetOrRefusal<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof TargetRefused ? new ActionRefused(error.message) : error;
  }
}

function readTarget(token: unknown, principal: unknown): Revoked {
  if (typeof token === 'string' && principal === undefined) return tokenTarget(token, TARGET_NAMES);
  if (typeof principal === 'string' && token === undefined) return principalTarget(principal, TARGET_NAMES);
  throw new ActionRefused('Give either token or principal, as text. Nothing was revoked.');
}
