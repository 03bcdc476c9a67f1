import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Filling } from '../../stages/buckets/payer-bucket.ts';
import type { RequestContext } from '../../stages/request-context.ts';
import type { Claims } from '../../store/shared-store.ts';
import { quietly } from '../log/process-output.ts';
import type { Deliveries, NotificationObserver } from './deliveries.ts';
import type { WebhookMessage } from './webhook.ts';

/** Messages that wait for an attempt, now or later, and questions to the store; beyond that, new ones are dropped. */
export const MOST_WAITING = 1_000;

/** Buckets that are known to be reported. Of the others, the store is asked again. */
const MOST_KNOWN = 20_000;

/** How long the store's answer that another replica has reported is believed, at most. */
const BELIEVED_MS = 60_000;

/** How long after a store that did not answer it is asked again about the same bucket. */
const RETRY_MS = 10_000;

export interface NotificationParts {
  /** Undefined where no other replica shares the store. */
  readonly claims: Claims | undefined;
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
    const { charged } = context;
    if (charged === undefined || charged.outcome === 'uncounted') return;
    for (const filling of charged.filling ?? []) this.#notice(filling, context);
  }

  async close(): Promise<void> {
    await Promise.all(this.#asking);
    await this.#parts.deliveries?.close();
    this.#parts.claims?.close();
  }

  #notice(filling: Filling, context: RequestContext): void {
    const tag = context.caller?.hashTag ?? filling.owner;
    const key = keyOf(filling, tag);
    if (this.#known.has(key)) return;
    if (this.#asking.size >= MOST_WAITING) {
      this.#parts.observer.notified('dropped');
      return;
    }
    this.#known.set(key, true, { ttl: RETRY_MS });
    const asking = this.#report(filling, tag, key, context).finally(() => this.#asking.delete(asking));
    this.#asking.add(asking);
  }

  async #report(filling: Filling, tag: string, key: string, context: RequestContext): Promise<void> {
    const { lastsMs: windowMs } = filling;
    const isFirst = await this.#claim(filling, tag, windowMs);
    if (isFirst === undefined) return;
    this.#known.set(key, true, { ttl: isFirst ? windowMs : Math.min(BELIEVED_MS, windowMs / 4) });
    // Nobody needs to read that most of a limit is used after all of it was.
    if (filling.percent === 100)
      this.#known.set(keyOf({ ...filling, percent: 80 }, tag), true, { ttl: windowMs });
    if (!isFirst) return;
    const { deliveries, log, isLogged, nowMs } = this.#parts;
    const data = dataOf(filling, context);
    if (isLogged) log.info(data, 'limit.reached');
    const timestamp = new Date(nowMs()).toISOString();
    deliveries?.add(newMessage({ type: 'limit.reached', timestamp, data }));
  }

  /** Whether this replica is the first to report in this window; undefined if the store does not answer. */
  async #claim(filling: Filling, tag: string, windowMs: number): Promise<boolean | undefined> {
    const { claims, observer, log } = this.#parts;
    if (claims === undefined) return true;
    const { bucket, owner } = filling;
    const claim = (percent: number) => claims.claim({ tag, name: `${percent}.${bucket}`, owner }, windowMs);
    try {
      const [isFirst] = await Promise.all([
        claim(filling.percent),
        ...(filling.percent === 100 ? [claim(80)] : []),
      ]);
      return isFirst;
    } catch (error) {
      observer.notified('unclaimed');
      const problem = error instanceof Error ? error.message : String(error);
      if (this.#isNewProblem(problem))
        log.warn({ problem }, 'a notification is not sent: the store did not record it');
      return undefined;
    }
  }
}

/** A message with an id of its own. */
export function newMessage(event: object): WebhookMessage {
  const id = `msg_${randomUUID()}`;
  return { id, payload: JSON.stringify({ id, ...event }) };
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
