import type { MessageRecord, Published, RecordedMessage, SharedStore } from '../store/shared-store.ts';
import { type Fact, type FactKind, Facts, NoRoom, recordedFact } from './facts.ts';
import { SharedClock } from './shared-clock.ts';

/** Facts that are to be made. */
export interface Making<T extends Fact> {
  /** What they are about. */
  readonly keys: readonly string[];
  /** Whether the record is read first, in case it has facts about these keys that this process does not know. It may be long. */
  readonly readsRecord?: boolean;
  /**
   * Returns the facts; none if there is nothing to change. What it throws rejects the change.
   *
   * @param atMs later than each of the facts that are replaced, though all may be of one millisecond
   * @param current the latest facts about these keys, which may be removals
   */
  make(atMs: number, current: readonly T[]): readonly T[];
}

export interface MadeFacts<T extends Fact> extends Published {
  readonly facts: readonly T[];
}

/** Makes facts that nobody else receives. */
export function makeFacts<T extends Fact>(
  { make }: Making<T>,
  current: readonly T[],
  nowMs: number,
): readonly T[] {
  return make(Math.max(nowMs, ...current.map(({ atMs }) => atMs + 1)), current);
}

/**
 * Makes facts by the clock of the store, replaces the earlier facts about the same keys in the record, and publishes them. Rejects as
 * `MessageRecord.publish` does, and with a NoRoom if the record is read and has as many facts as are kept.
 *
 * @param known the facts about these keys that this process keeps, the expired ones included
 */
export async function recordFacts<T extends Fact>(
  record: MessageRecord,
  kind: FactKind<T>,
  making: Making<T>,
  known: readonly T[] = [],
): Promise<MadeFacts<T>> {
  const { keys, readsRecord = false } = making;
  const nowMs = await record.nowMs();
  const facts = new Facts(kind);
  const replaced = new Set(known.map((fact) => kind.write(fact)));
  let others = 0;
  for (const message of readsRecord ? await record.messages() : []) {
    const fact = readMessage(kind, message, nowMs);
    if (fact === undefined) continue;
    if (!keys.includes(kind.keyOf(fact))) {
      others++;
      continue;
    }
    replaced.add(message.text);
    facts.add(fact, nowMs);
  }
  for (const fact of known) facts.add(fact, nowMs);
  const current = keys.flatMap((key) => facts.find(key, nowMs) ?? []);
  const made = makeFacts(making, current, nowMs);
  if (made.length === 0) return { facts: made, received: 0, notPublished: undefined };
  if (others >= kind.most && current.length === 0) throw new NoRoom(kind);
  // A replica that was away may still have what is replaced. So the record keeps what has replaced it for at least as long.
  const messages = made.map((fact) => {
    const { keptUntilMs = 0 } = facts.findKept(kind.keyOf(fact)) ?? {};
    return { text: kind.write(fact), untilMs: Math.max(fact.untilMs, keptUntilMs) };
  });
  return { ...(await record.publish(messages, [...replaced])), facts: made };
}

/** Facts of the store, and the clock by which they expire. */
export interface RecordedFacts<T extends Fact> {
  readonly facts: readonly T[];
  readonly clock: SharedClock;
}

/** All facts that a record holds: removals, and facts that have expired and replaced others, included. */
export async function recordedFacts<T extends Fact>(
  record: MessageRecord,
  kind: FactKind<T>,
): Promise<RecordedFacts<T>> {
  const clock = new SharedClock();
  clock.read(await record.time());
  const messages = await record.messages();
  const facts = messages.flatMap((message) => readMessage(kind, message, clock.nowMs()) ?? []);
  return { facts, clock };
}

function readMessage<T extends Fact>(kind: FactKind<T>, message: RecordedMessage, nowMs: number) {
  const fact = kind.read(message.text, nowMs);
  return fact && recordedFact(fact, message.untilMs);
}

/** How long a command waits for Redis before it does without what the replicas share. */
const COMMAND_WAIT_MS = 1_000;

/** The facts that the store holds. Rejects where it does not answer. There are none where no replica shares the store. */
export async function readFacts<T extends Fact>(
  shared: SharedStore | undefined,
  kind: FactKind<T>,
): Promise<RecordedFacts<T>> {
  if (shared === undefined) return { facts: [], clock: new SharedClock() };
  return shared.withRecord(kind.topic, (record) => recordedFacts(record, kind), COMMAND_WAIT_MS);
}
