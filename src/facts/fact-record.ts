import { inTurns } from '../domain/awaitable.ts';
import type { MessageRecord, Published, RecordedMessage, SharedStore } from '../store/shared-store.ts';
import { type Fact, type FactKind, Facts, NoRoom, recordedFact } from './facts.ts';
import { SharedClock } from './shared-clock.ts';

/** Messages parsed before yielding to requests. */
const PER_TURN = 500;

/** Facts that are to be made. */
export interface Making<T extends Fact> {
  /** What they are about. */
  readonly keys: readonly string[];
  /** Whether the record is read first, in case it has facts about these keys that this process does not know. It may be long. */
  readonly readsRecord?: boolean;
  /** Whether a fact that somebody else makes at the same time must not end earlier because of these. The record is then read afterwards. */
  readonly keepsLonger?: boolean;
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
  const { keys, readsRecord = false, keepsLonger = false } = making;
  const nowMs = await record.nowMs();
  const { recorded, others } = readsRecord
    ? await readAbout(record, kind, keys, nowMs)
    : { recorded: [], others: 0 };
  const replaced = new Set([
    ...known.flatMap((fact) => [kind.write(fact), kind.write(asWrittenBy030(fact))]),
    ...recorded.map(({ text }) => text),
  ]);
  const about = [...recorded.map(({ fact }) => fact), ...known];
  const facts = new Facts(kind);
  for (const fact of about) facts.add(fact, nowMs);
  const latest = keys.flatMap((key) => facts.find(key, nowMs) ?? []);
  const current = latest.map((one) => (keepsLonger ? endingLast(one, about, kind) : one));
  const made = makeFacts(making, current, nowMs);
  if (made.length === 0) return { facts: made, received: 0, notPublished: undefined };
  if (others >= kind.most && current.length === 0) throw new NoRoom(kind);
  // A replica that was away may still have what is replaced. So the record keeps what has replaced it for at least as long.
  const messages = made.map((fact) => {
    const { keptUntilMs = 0 } = facts.findKept(kind.keyOf(fact)) ?? {};
    return { text: kind.write(fact), untilMs: Math.max(fact.untilMs, keptUntilMs) };
  });
  const published = { ...(await record.publish(messages, [...replaced])), facts: made };
  return keepsLonger ? withLongest(record, kind, published) : published;
}

/** Replicas of 0.3.0 write facts to the record again, without the members that they do not know. */
function asWrittenBy030<T extends Fact>(fact: T): T {
  return { ...fact, replica: undefined, filed: undefined };
}

/** A message of a record, and the fact that it states. */
interface Recorded<T> {
  readonly fact: T;
  readonly text: string;
}

/** What a record has about some keys, and how many facts about others. Yields to requests, because there may be many. */
async function readAbout<T extends Fact>(
  record: MessageRecord,
  kind: FactKind<T>,
  keys: readonly string[],
  nowMs: number,
) {
  const recorded: Recorded<T>[] = [];
  let others = 0;
  for await (const message of inTurns(await record.messages(), PER_TURN)) {
    const fact = readMessage(kind, message, nowMs);
    if (fact === undefined) continue;
    if (keys.includes(kind.keyOf(fact))) recorded.push({ fact, text: message.text });
    else others++;
  }
  return { recorded, others };
}

/** A fact with the end of the longest about its key, unless one of them is a removal, which may be meant for all of them. */
function endingLast<T extends Fact>(latest: T, all: readonly T[], { keyOf }: FactKind<T>): T {
  const same = all.filter((one) => keyOf(one) === keyOf(latest));
  if (same.some(({ isRemoved }) => isRemoved)) return latest;
  return { ...latest, untilMs: Math.max(latest.untilMs, ...same.map(({ untilMs }) => untilMs)) };
}

/** Several replicas that make facts about one key at the same moment need fewer. */
const MOST_REPAIRS = 5;

/**
 * Makes a fact once more that somebody else has made at the same time, so that neither had read the other one, if the later one ends
 * earlier. The one that is published last is read together with all others.
 */
async function withLongest<T extends Fact>(
  record: MessageRecord,
  kind: FactKind<T>,
  published: MadeFacts<T>,
): Promise<MadeFacts<T>> {
  let last = published;
  try {
    for (let repairs = 0; repairs < MOST_REPAIRS; repairs++) {
      const [fact] = last.facts;
      if (fact === undefined) return last;
      const nowMs = await record.nowMs();
      const { recorded } = await readAbout(record, kind, [kind.keyOf(fact)], nowMs);
      const longest = longestOf(fact, kind, recorded, nowMs);
      if (longest === undefined) return last;
      const { made, keptUntilMs, replaced } = longest;
      const message = { text: kind.write(made), untilMs: keptUntilMs };
      last = { ...(await record.publish([message], replaced)), facts: [made] };
    }
  } catch {
    // What was published is in force all the same.
  }
  return last;
}

/** The later of several facts about one key with the end of the longest, and the messages that it replaces. Undefined if it is there. */
function longestOf<T extends Fact>(
  fact: T,
  kind: FactKind<T>,
  recorded: readonly Recorded<T>[],
  nowMs: number,
) {
  const known = new Facts(kind);
  const all = [fact, ...recorded.map((one) => one.fact)];
  const replaced = [kind.write(fact), ...recorded.map(({ text }) => text)];
  for (const one of all) known.add(one, nowMs);
  const current = known.find(kind.keyOf(fact), nowMs) ?? fact;
  const { untilMs } = endingLast(current, all, kind);
  if (current.untilMs === untilMs) return undefined;
  const atMs = Math.max(nowMs, ...all.map((one) => one.atMs + 1));
  const keptUntilMs = Math.max(untilMs, ...all.map((one) => one.keptUntilMs ?? 0));
  return { made: { ...fact, atMs, untilMs }, keptUntilMs, replaced };
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
