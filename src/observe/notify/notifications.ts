import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { andThen } from '../../domain/awaitable.ts';
import { pace } from '../../domain/pace.ts';
import { type Filling, fillingOf } from '../../stages/buckets/payer-bucket.ts';
import type { RequestContext } from '../../stages/request-context.ts';
import type { Claim, SharedClaims } from '../../store/shared-store.ts';
import { countedBuckets, type Settled } from '../../store/store.ts';
import { quietly } from '../log/process-output.ts';
import type { Deliveries, NotificationObserver } from './deliveries.ts';

/** Questions to the store at a time; beyond that, new notifications are dropped. */
const MOST_ASKING = 1_000;

/** Buckets that are known to be reported. Of the others, the store is asked again. */
const MOST_KNOWN = 20_000;

/** How long the store's answer that another replica has reported is believed, at most. */
const BELIEVED_MS = 60_000;

/** How long after a store that did not answer it is asked again about the same bucket. */
const RETRY_MS = 10_000;

interface NotificationParts {
  /** Undefined where no other replica shares the store. */
  readonly claims: SharedClaims | undefined;
  /** Undefined without a webhook. */
  readonly deliveries: Deliveries | undefined;
  readonly observer: NotificationObserver;
  readonly log: Logger;
  /** Whether each is also a line of the log. */
  readonly isLogged: boolean;
  /** Unix time by the clock that all replicas share. */
  nowMs(): number;
}

/**
 * Reports that 80 % or all of a limit is used: once per window for each owner, whichever replica sees it first. That is what has the first
 * claim in the store. Requests only look here, and wait for nothing.
 */
export class Notifications {
  readonly #parts: NotificationParts;
  readonly #known = new LRUCache<string, true>({ max: MOST_KNOWN, ttl: BELIEVED_MS });
  readonly #isNewProblem = quietly(() => performance.now());
  readonly #asking = new Set<Promise<void>>();

  constructor(parts: NotificationParts) {
    this.#parts = parts;
  }

  requestFinished(context: RequestContext): void {
    const { charged, settling } = context;
    if (charged === undefined || charged.outcome === 'uncounted') return;
    if (settling === undefined) this.#noticeAll(charged.filling, context);
    else
      andThen(settling, (settled) =>
        this.#noticeAll(fillingAfter(settled, context, charged.filling), context),
      );
  }

  async close(): Promise<void> {
    await Promise.all(this.#asking);
    await this.#parts.deliveries?.close();
    this.#parts.claims?.close();
  }

  #noticeAll(all: readonly Filling[] | undefined, context: RequestContext): void {
    for (const filling of all ?? []) this.#notice(filling, context);
  }

  #notice(filling: Filling, context: RequestContext): void {
    const tag = context.caller?.hashTag ?? filling.owner;
    const key = keyOf(filling, tag);
    if (this.#known.has(key)) return;
    if (this.#asking.size >= MOST_ASKING) {
      this.#parts.observer.notified('dropped');
      return;
    }
    this.#known.set(key, true, { ttl: RETRY_MS });
    const asking = this.#report(filling, tag, key, context).finally(() => this.#asking.delete(asking));
    this.#asking.add(asking);
  }

  async #report(filling: Filling, tag: string, key: string, context: RequestContext): Promise<void> {
    const { lastsMs: windowMs } = filling;
    const isFirst = await this.#asked(() => this.#claim(filling, tag));
    if (isFirst === undefined) return;
    this.#known.set(key, true, { ttl: isFirst ? windowMs : Math.min(BELIEVED_MS, windowMs / 4) });
    // Nobody needs to read that most of a limit is used after all of it was.
    if (filling.percent === 100)
      this.#known.set(keyOf({ ...filling, percent: 80 }, tag), true, { ttl: windowMs });
    if (!isFirst) return;
    const { claims, deliveries, log, isLogged, nowMs } = this.#parts;
    const data = dataOf(filling, context);
    const isReported = await this.#asked(async () => {
      await deliveries?.add(nowMs(), { type: 'limit.reached', data });
      if (isLogged) log.info(data, 'limit.reached');
      return true;
    });
    if (!isReported) this.#known.set(key, true, { ttl: RETRY_MS });
    // Without an answer, another replica may report once more.
    else await claims?.keep(claimOf(filling, tag), windowMs).catch(() => undefined);
  }

  /**
   * Whether this replica is the first to report in this window. A claim lasts for the window once the message is kept, or the line is
   * written: if this replica ends before that, or did not get the answer, the next request reports.
   */
  async #claim(filling: Filling, tag: string): Promise<boolean> {
    const { claims } = this.#parts;
    if (claims === undefined) return true;
    const { lastsMs, percent } = filling;
    const [isFirst = false] = await Promise.all([
      claims.claim(claimOf(filling, tag), Math.min(lastsMs, pace.claimMs)),
      ...(percent === 100 ? [claims.claim(claimOf({ ...filling, percent: 80 }, tag), lastsMs)] : []),
    ]);
    return isFirst;
  }

  /** What the store answers; undefined if it does not. */
  async #asked<T>(ask: () => Promise<T>): Promise<T | undefined> {
    const { observer, log } = this.#parts;
    try {
      return await ask();
    } catch (error) {
      observer.notified('unclaimed');
      const problem = error instanceof Error ? error.message : String(error);
      if (this.#isNewProblem(problem))
        log.warn({ problem }, 'a notification is not sent: the store did not record it');
      return undefined;
    }
  }
}

/** What the limits hold once the request costs what it has cost in the end. */
function fillingAfter(
  settled: Settled,
  { due, decision }: RequestContext,
  reserved: readonly Filling[] | undefined,
) {
  if (settled.outcome === 'dropped' || due === undefined || decision?.outcome !== 'admitted') return reserved;
  const states = settled.buckets.map((state) => state && { ...state, retryAfterUs: 0 });
  return fillingOf(countedBuckets(due.buckets, decision.buckets), states);
}

function claimOf({ percent, bucket, owner }: Filling, tag: string): Claim {
  return { tag, name: `${percent}.${bucket}`, owner };
}

/** A principal has a bucket in each Organization that it acts for. */
function keyOf({ percent, bucket, owner }: Filling, tag: string): string {
  return `${percent} ${bucket} ${owner} ${tag}`;
}

function dataOf(filling: Filling, { caller, charged }: RequestContext): object {
  return {
    ...filling,
    used: filling.limit - filling.remaining,
    account: caller?.account ?? null,
    organization: caller?.organization ?? null,
    plan: charged?.plan ?? null,
  };
}
