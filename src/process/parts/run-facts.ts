import type { Logger } from 'pino';
import type { FactPublisher } from '../../admin/shared-change.ts';
import { SharedClock } from '../../facts/clock.ts';
import { Ends } from '../../facts/ends.ts';
import type { Fact, FactKind, Facts } from '../../facts/facts.ts';
import { type Follower, follow } from '../../facts/follow.ts';
import type { SharedObserver } from '../../facts/ignored.ts';
import type { Changes } from '../../observe/log/changes.ts';
import type { SharedStore } from '../../store/shared-store.ts';

export interface RunningFacts<T extends Fact> {
  /** Undefined where no other replica shares the store. */
  readonly publisher: FactPublisher<T> | undefined;
  /** How long ago the facts of all replicas were read. */
  ageSeconds(): number;
  /** Resolves once the facts of before are in force, or after a second without Redis. */
  readonly ready: Promise<void>;
  close(): void;
}

/** Where what replicas share is reported, and the clock of Redis, which is read with it. */
export interface Reported {
  readonly clock: SharedClock;
  readonly observer: SharedObserver;
  readonly log: Logger;
  /** Where changes of what is in force are reported. */
  readonly changes: Changes;
}

interface FollowedFacts<T extends Fact> extends Follower<T> {
  readonly facts: Pick<Facts<T>, 'has' | 'missingFrom' | 'onAdded'>;
  /** Called when a fact has expired. */
  ended(fact: T): void;
}

/** Follows the facts of one kind until they expire, and publishes those that are made here. */
export function runFacts<T extends Fact>(
  shared: SharedStore | undefined,
  follower: FollowedFacts<T>,
): RunningFacts<T> {
  const { kind, clock, facts, ended } = follower;
  const ends = new Ends(kind, () => clock.nowMs(), ended);
  facts.onAdded = (fact) => ends.add(fact);
  if (shared === undefined) {
    const close = () => ends.close();
    return { publisher: undefined, ageSeconds: () => 0, ready: Promise.resolve(), close };
  }
  const { topic, write } = kind;
  const following = follow(shared, follower);
  return {
    ready: following.ready,
    close() {
      ends.close();
      following.close();
    },
    ageSeconds: () => clock.ageSeconds,
    publisher: {
      nowMs: () => shared.withRecord(topic, (record) => record.nowMs()),
      publish: (facts, replaced) =>
        shared.withRecord(topic, (record) =>
          record.publish(
            facts.map((fact) => ({ text: write(fact), untilMs: fact.untilMs })),
            replaced.map(write),
          ),
        ),
    },
  };
}

/** How long a command waits for Redis before it does without what the replicas share. */
const COMMAND_WAIT_MS = 1_000;

/** Facts of the store, and the clock by which they expire. */
export interface ReadFacts<T extends Fact> {
  readonly facts: readonly T[];
  readonly clock: SharedClock;
}

/** The facts that the store holds. Rejects where it does not answer; none where no replica shares the store. */
export async function readFacts<T extends Fact>(
  shared: SharedStore | undefined,
  kind: FactKind<T>,
): Promise<ReadFacts<T>> {
  const clock = new SharedClock();
  if (shared === undefined) return { facts: [], clock };
  const texts = await shared.withRecord(
    kind.topic,
    async (record) => {
      clock.read(await record.time());
      return record.read();
    },
    COMMAND_WAIT_MS,
  );
  const read = texts.map((text) => kind.read(text, clock.nowMs()));
  return { facts: read.filter((fact) => fact !== undefined), clock };
}
