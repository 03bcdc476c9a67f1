import type { Payer } from '../../domain/caller.ts';

/** Reasons and further callers that are remembered, and as many earlier ones: a flood of new ones does not fill the memory. */
const MOST_REMEMBERED = 50_000;

/** What refusals for one reason share. It is used again after its end: a flood would otherwise make thousands of objects a second. */
export interface SharedRefusal {
  readonly hashTag: string | undefined;
  number: number;
  limit: number;
  /** The clock of Redis may be set back: earlier requests do not share it, which may be of an earlier hour. */
  fromMs: number;
  untilMs: number;
  payer: Payer | undefined;
  /** Numbers of further callers, if there are any. */
  callers: Map<string, number> | undefined;
}

/** By operation, then by bucket, then by owner: short keys, because a flood asks for one with each request. */
type ByOperation = Map<string, Map<string, Map<string, SharedRefusal>>>;

/**
 * The reasons for which requests were refused. Those that no request was refused for between two calls of `forget` are forgotten. It is
 * also called when there are too many, and drops them as a whole: a walk through them would delay requests.
 */
export class SharedRefusals {
  #known: ByOperation = new Map();
  #earlier: ByOperation = new Map();
  /** Reasons in `#known`, and their further callers. */
  #count = 0;

  find(
    operation: string,
    bucket: string,
    owner: string,
    hashTag: string | undefined,
  ): SharedRefusal | undefined {
    if (this.#count >= MOST_REMEMBERED) this.forget();
    const shared = sharedIn(this.#known.get(operation)?.get(bucket), owner, hashTag);
    if (shared !== undefined) return shared;
    const earlier = sharedIn(this.#earlier.get(operation)?.get(bucket), owner, hashTag);
    if (earlier === undefined) return undefined;
    const callers = earlier.callers?.size ?? 0;
    // Half is left for others, which would otherwise be forgotten with each few requests.
    if (this.#count + callers <= MOST_REMEMBERED / 2) this.#count += callers;
    else earlier.callers = undefined;
    this.add(operation, bucket, owner, earlier);
    return earlier;
  }

  add(operation: string, bucket: string, owner: string, shared: SharedRefusal): void {
    const byBucket = this.#known.get(operation) ?? new Map<string, Map<string, SharedRefusal>>();
    if (byBucket.size === 0) this.#known.set(operation, byBucket);
    const known = byBucket.get(bucket) ?? new Map<string, SharedRefusal>();
    if (known.size === 0) byBucket.set(bucket, known);
    known.set(known.has(owner) ? keyWith(owner, shared.hashTag) : owner, shared);
    this.#count += 1;
  }

  addCaller(shared: SharedRefusal, key: string, number: number): void {
    shared.callers ??= new Map();
    shared.callers.set(key, number);
    this.#count += 1;
  }

  /** Others are refused for the reason from now on. */
  removeCallers(shared: SharedRefusal): void {
    this.#count -= shared.callers?.size ?? 0;
    shared.callers = undefined;
  }

  forget(): void {
    this.#earlier = this.#known;
    this.#known = new Map();
    this.#count = 0;
  }
}

function sharedIn(
  known: ReadonlyMap<string, SharedRefusal> | undefined,
  owner: string,
  hashTag: string | undefined,
): SharedRefusal | undefined {
  const first = known?.get(owner);
  if (first === undefined || first.hashTag === hashTag) return first;
  // One principal has a bucket for each hash tag. Few do, and to put a key together takes long.
  return known?.get(keyWith(owner, hashTag));
}

/** No id has a space. */
function keyWith(owner: string, hashTag: string | undefined): string {
  return `${owner} ${hashTag}`;
}
