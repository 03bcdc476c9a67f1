import type { Caller } from '../domain/caller.ts';
import { US_PER_SECOND } from '../domain/clock.ts';
import { ownerText } from '../domain/limits/scopes.ts';
import { Refusal } from '../domain/problems.ts';
import { BLOCKED, type Block, type Blocks } from '../facts/blocks.ts';
import type { Denied } from './request-context.ts';

/** Why nothing that comes from this address is served; undefined unless it is blocked. */
export function blockedAddress(blocks: Blocks, network: string, cost: number): Denied | undefined {
  const block = blocks.of('address', network);
  return block && denied(blocks, block, cost);
}

/** As `blockedAddress`, for a caller. Of several blocks, it is the one that ends last. */
export function blockedCaller(
  blocks: Blocks,
  { principal, account, organization }: Caller,
  cost: number,
): Denied | undefined {
  const all = [
    blocks.of('account', account),
    blocks.of('principal', principal.id),
    blocks.of('organization', organization),
  ].filter((block) => block !== undefined);
  if (all.length === 0) return undefined;
  return denied(
    blocks,
    all.reduce((last, block) => (block.untilMs > last.untilMs ? block : last)),
    cost,
  );
}

/** Nothing is counted for a caller who is blocked. */
const NO_LIMIT = { bucket: BLOCKED, limit: 0, windowSeconds: 0 };

/** It names neither the reason nor the author, which are for operators. */
function denied(blocks: Blocks, { scope, id, untilMs }: Block, costPoints: number): Denied {
  const retryAfterUs = (untilMs - blocks.clock.nowMs()) * 1_000;
  const seconds = Math.max(1, Math.ceil(retryAfterUs / US_PER_SECOND));
  const end = new Date(Math.ceil(untilMs / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
  return {
    outcome: 'denied',
    policy: '',
    rateLimit: '',
    ...NO_LIMIT,
    owner: id,
    remaining: 0,
    retryAfterUs,
    refusal: new Refusal('RateLimitExceeded', `${ownerText(scope, id)} is blocked until ${end}.`, {
      extensions: { ...NO_LIMIT, costPoints },
      headers: { 'Retry-After': `${seconds}` },
    }),
  };
}
