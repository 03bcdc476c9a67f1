import { hostname } from 'node:os';
import type { Awaitable } from '../../domain/awaitable.ts';
import { NEVER } from '../../domain/limits/limits.ts';
import type { PayerBucket } from '../../stages/buckets/payer-bucket.ts';
import { limitPart } from './refusal.ts';
import type { PendingRefusal } from './refusal-log.ts';

/** The part of a line that callers with the same limit share. It is made once for them, because a flood has thousands. */
export class LimitParts {
  readonly #writtenAt: (bucket: PayerBucket) => Promise<string | undefined>;
  readonly #replica = hostname();
  /** By operation and bucket: what was made last. */
  readonly #last = new Map<string, { readonly of: PendingRefusal; readonly part: string }>();

  /** @param writtenAt where the files set the limit of a bucket */
  constructor(writtenAt: (bucket: PayerBucket) => Promise<string | undefined>) {
    this.#writtenAt = writtenAt;
  }

  of(one: PendingRefusal): Awaitable<string> {
    const last = this.#last.get(`${one.operation}\n${one.bucket}`);
    return last !== undefined && isSame(last.of, one) ? last.part : this.#make(one);
  }

  /** The files may have changed. */
  forget(): void {
    this.#last.clear();
  }

  async #make(of: PendingRefusal): Promise<string> {
    const { operation, bucket, cost, charged, limited } = of;
    const { limit, windowSeconds, degraded } = charged;
    const writtenAt = limited && (await this.#writtenAt(limited));
    const part = limitPart({
      ...{ replica: this.#replica, operation, cost, bucket, limit, windowSeconds },
      ...(degraded !== undefined && { degraded }),
      ...(writtenAt !== undefined && { writtenAt }),
      ...(limited === undefined ? { detail: charged.refusal.detail } : sourceOf(limited)),
    });
    this.#last.set(`${operation}\n${bucket}`, { of, part });
    return part;
  }
}

function isSame(a: PendingRefusal, b: PendingRefusal): boolean {
  const [ofA, ofB] = [a.limited, b.limited];
  if (ofA === undefined || ofB === undefined || ofB.source === 'override') return false;
  return (
    ofA.source === ofB.source &&
    ofA.plan === ofB.plan &&
    ofA.untilMs === ofB.untilMs &&
    ofA.scope === ofB.scope &&
    ofA.counts === ofB.counts &&
    a.cost === b.cost &&
    a.charged.limit === b.charged.limit &&
    a.charged.windowSeconds === b.charged.windowSeconds &&
    a.charged.degraded === b.charged.degraded
  );
}

function sourceOf({ scope, counts, source, plan, untilMs }: PayerBucket) {
  return {
    ...{ scope, counts, source },
    ...(plan !== undefined && { plan }),
    ...(untilMs !== NEVER && { untilMs }),
  };
}
