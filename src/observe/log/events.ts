/** Log lines about what requests show, besides the access log: limits that are nearly used, plans and operations that no file has. */
import type { Logger } from 'pino';
import { costAtAdmission, type RequestContext } from '../../stages/request-context.ts';

/** The time between two lines about the same Account and bucket. */
const QUIET_MS = 60_000;

/** Names of plans that the limits do not have. Tokens could carry any number of them. */
const MOST_UNKNOWN_PLANS = 100;

/** Accounts remembered for each event and bucket. Further ones are not logged until the first are forgotten. */
const MOST_REMEMBERED = 5_000;

/**
 * Writes `plan.unknown` once for each name, and `limit.near` and `limit.exceeded`, each at most once a minute for an Account and bucket, or for a Person or an address
 * and its own bucket. The gateway's requests pass through it, so it does nothing for those that are neither.
 */
export class LimitEvents {
  readonly #log: Logger;
  readonly #near = new RecentEvents();
  readonly #exceeded = new RecentEvents();
  readonly #unknownPlans = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** @param nowMs monotonic */
  requestFinished(context: RequestContext, nowMs: number): void {
    const { charged } = context;
    if (charged?.unknownPlan !== undefined) this.#noteUnknown(charged.unknownPlan);
    if (charged === undefined || charged.outcome === 'uncounted') return;
    if (charged.outcome === 'denied') {
      const { bucket, owner, limit, windowSeconds, remaining, retryAfterUs } = charged;
      if (!this.#isNew(this.#exceeded, bucket, payerOf(context, owner), nowMs)) return;
      const left = { remaining, retryAfterMs: retryAfterUs / 1000 };
      this.#log.info({ ...callerOf(context), bucket, limit, windowSeconds, ...left }, 'limit.exceeded');
    } else if (charged.nearLimit !== undefined) {
      for (const { owner, ...near } of charged.nearLimit) {
        if (this.#isNew(this.#near, near.bucket, payerOf(context, owner), nowMs))
          this.#log.info({ ...callerOf(context), ...near }, 'limit.near');
      }
    }
  }

  #noteUnknown(plan: string): void {
    if (this.#unknownPlans.has(plan) || this.#unknownPlans.size >= MOST_UNKNOWN_PLANS) return;
    this.#unknownPlans.add(plan);
    this.#log.warn({ plan }, 'plan.unknown');
  }

  #isNew(recent: RecentEvents, bucket: string, owner: string, nowMs: number): boolean {
    const verdict = recent.add(bucket, owner, nowMs);
    if (verdict === 'full') {
      this.#log.warn(
        { bucket },
        'more Accounts are at their limit than are logged: see weir top for the others',
      );
    }
    return verdict === 'new';
  }
}

/** An Organization's bucket has a line for each of its Accounts. */
function payerOf({ caller }: RequestContext, owner: string): string {
  return caller?.organization === owner ? caller.account : owner;
}

function callerOf(request: RequestContext): object {
  const { requestId, operation, caller, publicClient } = request;
  return {
    requestId,
    account: caller?.account,
    organization: caller?.organization,
    principal: caller?.principal.id,
    address: publicClient?.address,
    operation: operation?.id,
    cost: costAtAdmission(request),
  };
}

/** Remembers for a minute which owners were seen with which bucket. */
class RecentEvents {
  /** By bucket: when each owner is forgotten. All are remembered for the same time, so the first is the oldest. */
  readonly #untilMs = new Map<string, Map<string, number>>();
  readonly #quietUntilMs = new Map<string, number>();

  /** `known` if the owner was seen within the last minute; `full`, once a minute, if it cannot be remembered. */
  add(bucket: string, owner: string, nowMs: number): 'new' | 'known' | 'full' {
    const owners = this.#ownersOf(bucket);
    if ((owners.get(owner) ?? nowMs) > nowMs) return 'known';
    for (const [oldest, untilMs] of owners) {
      if (untilMs > nowMs) break;
      owners.delete(oldest);
    }
    if (owners.size < MOST_REMEMBERED) {
      owners.set(owner, nowMs + QUIET_MS);
      return 'new';
    }
    if ((this.#quietUntilMs.get(bucket) ?? nowMs) > nowMs) return 'known';
    this.#quietUntilMs.set(bucket, nowMs + QUIET_MS);
    return 'full';
  }

  #ownersOf(bucket: string): Map<string, number> {
    let owners = this.#untilMs.get(bucket);
    if (owners === undefined) {
      owners = new Map();
      this.#untilMs.set(bucket, owners);
    }
    return owners;
  }
}

/** Shapes remembered; beyond that, new shapes are only counted by the metric. */
const MAX_SHAPES = 1_000;

/** Logs one line for each new shape of an unlisted path, so that a missing cost is noticed. */
export function createUnlistedLog(log: Logger): (method: string, path: string) => void {
  const seen = new Set<string>();
  return (method, path) => {
    const shape = `${method} ${shapeOf(path)}`;
    if (seen.has(shape) || seen.size >= MAX_SHAPES) return;
    seen.add(shape);
    log.warn({ shape }, 'unlisted operation: it has no price of its own');
    if (seen.size === MAX_SHAPES) log.warn('further shapes of unlisted operations are counted, not logged');
  };
}

/** `/v3/things/th_81f2/open` -> `/v3/things/{}/open`: a segment with a digit is treated as an id. */
function shapeOf(path: string): string {
  return path
    .split('/')
    .slice(0, 12)
    .map((segment) => (/^v\d+$/.test(segment) || !/\d/.test(segment) ? segment.slice(0, 40) : '{}'))
    .join('/');
}
