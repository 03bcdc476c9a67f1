import type { Callback } from 'ioredis';
import type {
  JournaledCounts,
  PresentCounts,
  Recovered,
  Recovering,
  Work,
} from '../journal/journaled-counts.ts';
import type { RemoteStoreSettings } from './connection/redis-options.ts';
import type { Marks } from './marks.ts';
import type { RedisClient } from './scripts.ts';
import { type LinkUse, SharedLink } from './shared/shared-link.ts';

/** Keys of one call, so that it takes Redis less than a millisecond. */
const KEYS_PER_CALL = 128;
/** Calls that wait for their answers at a time. */
const CALLS_AT_ONCE = 256;
/** The script reads Redis TIME, and gives keys the usual life. */
const USUAL = '0 0';
/** How long buckets count before the end of a recovery. None takes as long. */
const FIRST_MS = 3_600_000;

/** Puts counts back into Redis. It has a connection of its own, which is open during a recovery, so that no charge waits behind it. */
export class RedisCounts implements JournaledCounts {
  readonly #link: SharedLink;
  readonly #marks: Marks;
  /** The first group whose mark was not right when they were last read. It is read first, because it is usually still wrong. */
  #wrong = 0;

  constructor(settings: RemoteStoreSettings, marks: Marks) {
    // A call of this connection may take a moment, while Redis works on the others.
    this.#link = new SharedLink(settings);
    this.#marks = marks;
  }

  answered(): Promise<void> {
    return this.#marks.answered();
  }

  isComplete(): Promise<boolean> {
    return this.#withLink(async (link) => {
      const { groups } = this.#marks;
      const inOrder = [...groups.slice(this.#wrong), ...groups.slice(0, this.#wrong)];
      const { marked } = await this.#mark(link, 'read', '', inOrder);
      this.#wrong = inOrder.find((group, index) => marked[index] !== group) ?? 0;
      if (marked.length < groups.length) return false;
      // Charges may expect what was right before.
      this.#marks.changed();
      return true;
    });
  }

  recover(recovery: string, isInDoubt: boolean, work: Work, onAnswered: () => void): Promise<boolean> {
    return this.#withLink(async (link) => {
      const { groups: all } = this.#marks;
      const action = isInDoubt ? 'take' : 'begin';
      const { marked, server } = await this.#mark(link, action, recovery, all, onAnswered);
      if (marked.length === 0) return false;
      const taken = new Set(marked);
      const store: Recovering = {
        putBack: (counts) => this.#putBack(link, taken, recovery, counts, onAnswered),
        wanted: () => this.#marks.wanted.take(link.client),
        admit: (keys) => this.#admit(link.client, taken, recovery, keys),
      };
      await work(store, all.length === 1 ? server : '');
      const ended = await this.#mark(link, 'end', recovery, marked, onAnswered);
      if (ended.marked.length < marked.length)
        throw new Error('Redis lost its data again during the recovery');
      return true;
    });
  }

  overtake(recovery: string): Promise<readonly number[]> {
    return this.#withLink(async (link) => {
      const { groups } = this.#marks;
      // What was taken before stays with the recovery that has begun since: it ends without this replica.
      const insisting = groups.filter((group) => this.#marks.of(group) !== undefined);
      if (insisting.length === 0) return [];
      const { marked, server } = await this.#mark(link, 'begin', recovery, insisting);
      if (groups.length > 1 || server === this.#marks.of(0)?.expected) return marked;
      // Charges may go to another server.
      this.#marks.changed();
      return [];
    });
  }

  goOn(groups: readonly number[]): void {
    this.#marks.waive(groups);
  }

  insist(): void {
    this.#marks.insist();
  }

  async #withLink<Result>(use: (link: LinkUse) => Promise<Result>): Promise<Result> {
    const link = this.#link.use();
    try {
      await untilReady(link.client);
      await link.tried();
      return await use(link);
    } finally {
      link.close();
    }
  }

  /**
   * Returns the groups for which the script has not returned 0, and the last id that it has returned. Reading ends soon after a wrong mark.
   * A Cluster's slots without a server are left out, if there are others.
   */
  async #mark(
    link: LinkUse,
    action: 'read' | 'begin' | 'take' | 'end',
    recovery: string,
    groups: readonly number[],
    onAnswered: () => void = () => {},
  ): Promise<{ readonly marked: readonly number[]; readonly server: string }> {
    const marked: number[] = [];
    const failures: unknown[] = [];
    let called = 0;
    let server = '';
    for (const some of partsOf(groups, CALLS_AT_ONCE)) {
      const call = (group: number) => link.client.mark(this.#marks.keyOf(group), action, recovery);
      const replies = await Promise.allSettled(inOneWrite(link, some, call));
      onAnswered();
      const answers = replies.map((reply) => (reply.status === 'fulfilled' ? reply.value : 0));
      failures.push(...replies.flatMap((reply) => (reply.status === 'rejected' ? [reply.reason] : [])));
      marked.push(...some.filter((_, index) => answers[index] !== 0));
      server = String(answers.findLast((answer) => answer !== 0) ?? server);
      called += some.length;
      if (action === 'read' && marked.length + failures.length < called) break;
    }
    if (failures.length === groups.length) throw failures.at(-1);
    return { marked, server };
  }

  async #putBack(
    link: LinkUse,
    groups: ReadonlySet<number>,
    recovery: string,
    counts: PresentCounts,
    onAnswered: () => void,
  ): Promise<Recovered> {
    const calls: (string | number)[][] = [];
    for (const { keys, texts } of this.#groupsOf(counts, groups)) {
      const mark = this.#markOf(keys);
      for (let start = 0; start < keys.length; start += KEYS_PER_CALL) {
        const some = keys.slice(start, start + KEYS_PER_CALL);
        calls.push([
          1 + some.length,
          mark,
          ...some,
          recovery,
          USUAL,
          ...texts.slice(start, start + KEYS_PER_CALL),
        ]);
      }
    }
    const sum = { buckets: 0, points: 0 };
    for (const some of partsOf(calls, CALLS_AT_ONCE)) {
      for (const reply of await Promise.all(inOneWrite(link, some, (args) => link.client.putBack(args)))) {
        const [buckets, points] = reply as [number, number];
        sum.buckets += buckets;
        sum.points += points;
      }
      onAnswered();
    }
    return sum;
  }

  /** A user who may not do it has no bucket that counts before the end. */
  async #admit(
    client: RedisClient,
    groups: ReadonlySet<number>,
    recovery: string,
    keys: readonly string[],
  ): Promise<void> {
    const calls: Promise<unknown>[] = [];
    for (const some of this.#groupsOf({ keys, texts: [] }, groups)) {
      const key = `${this.#markOf(some.keys)}:${recovery}`;
      calls.push(client.sadd(key, ...some.keys), client.pexpire(key, FIRST_MS));
    }
    await Promise.allSettled(calls);
  }

  /** The key of the mark of buckets of one group. */
  #markOf(keys: readonly string[]): string {
    return this.#marks.keyOf(this.#marks.groupOf(keys[0] ?? ''));
  }

  /** The counts of these groups, one after another. */
  #groupsOf(counts: PresentCounts, groups: ReadonlySet<number>): Iterable<PresentCounts> {
    if (this.#marks.groups.length === 1) return [counts];
    const byGroup = new Map<number, { keys: string[]; texts: string[] }>();
    for (const [index, key] of counts.keys.entries()) {
      const group = this.#marks.groupOf(key);
      if (!groups.has(group)) continue;
      const others = byGroup.get(group) ?? { keys: [], texts: [] };
      byGroup.set(group, others);
      others.keys.push(key);
      others.texts.push(counts.texts[index] ?? '');
    }
    return byGroup.values();
  }
}

const READY_MS = 5_000;

/** Rejects if Redis cannot be reached in time. */
function untilReady(client: RedisClient): Promise<void> {
  if (client.status === 'ready') return Promise.resolve();
  return new Promise((resolve, reject) => {
    const ready: Callback = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      client.off('ready', ready);
      reject(new Error('Redis cannot be reached'));
    }, READY_MS);
    client.once('ready', ready);
  });
}

function* partsOf<Value>(all: readonly Value[], most: number): Generator<readonly Value[]> {
  for (let start = 0; start < all.length; start += most) yield all.slice(start, start + most);
}

/** Makes these calls, which reach each server in one write. */
function inOneWrite<Value>(
  link: LinkUse,
  values: readonly Value[],
  call: (value: Value) => Promise<unknown>,
): Promise<unknown>[] {
  let calls: Promise<unknown>[] = [];
  link.inOneWrite(() => {
    calls = values.map(call);
  });
  return calls;
}
