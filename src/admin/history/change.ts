import { Type } from 'typebox';
import { inTurns } from '../../domain/awaitable.ts';
import { hostName, matching, plainText, timeMs } from '../../facts/message-bounds.ts';
import type { KeptChange } from '../../observe/log/noticed-changes.ts';

/** Replicas notice a changed ConfigMap, a replica that is lost or a certificate that ends, up to this far apart. */
const SAME_CHANGE_MS = 120_000;

/** Changes compared before yielding to requests: a console asks for all of them every few seconds. */
const PER_TURN = 1_000;

const nullable = (maxLength: number) => Type.Union([plainText(maxLength), Type.Null()]);

/** The change in a parsed text of the record; undefined for any other text. */
export const asChange = matching(
  Type.Object({
    atMs: timeMs,
    kind: plainText(50),
    subject: nullable(2_000),
    text: plainText(300),
    by: nullable(200),
    why: nullable(200),
    replica: Type.Union([hostName, Type.Null()]),
    instance: Type.Optional(plainText(64)),
    noticedBy: Type.Optional(plainText(64)),
    writtenMs: Type.Optional(timeMs),
    seenMs: Type.Optional(timeMs),
  }),
);

/** A change, as the store keeps it. */
export interface RecordedChange extends KeptChange {
  /** The host name of the replica that it happened at; null where it happened at none, or at several. */
  readonly replica: string | null;
  /** The process that it happened to: host names may repeat. */
  readonly instance?: string | undefined;
  /** The process that noticed it, where others notice the same at other times. Two changes that it noticed are never one. */
  readonly noticedBy?: string | undefined;
  /** When a loss was written, which may be long after it happened. */
  readonly writtenMs?: number | undefined;
  /** Somebody has seen the losses that were written until then. */
  readonly seenMs?: number | undefined;
}

/** A change, as `GET /changes` answers it. */
export type ShownChange = ReturnType<typeof shown>;

/** What is one change. Most are noticed once, and have no sets. */
interface Group {
  readonly first: RecordedChange;
  /** By the process that noticed it: when it says that it happened. */
  noticedMs: Map<string | undefined, number> | undefined;
  replicas: Set<string | null> | undefined;
}

/**
 * Each change once, newest first: what several replicas noticed within two minutes is one change, at the earliest of its times. So is what
 * one replica wrote twice, because the answer to the first writing was lost.
 */
export async function onceEach(all: readonly RecordedChange[]): Promise<readonly RecordedChange[]> {
  const latest = new Map<string, Group>();
  const groups: Group[] = [];
  const sorted = all.toSorted((a, b) => a.atMs - b.atMs);
  for await (const change of inTurns(sorted, PER_TURN)) {
    const key = keyOf(change);
    const known = latest.get(key);
    if (known !== undefined && isOfGroup(change, known)) {
      const { first } = known;
      known.noticedMs = (known.noticedMs ?? new Map([[first.noticedBy, first.atMs]])).set(
        change.noticedBy,
        change.atMs,
      );
      known.replicas = (known.replicas ?? new Set([first.replica])).add(change.replica);
      continue;
    }
    const group = { first: change, noticedMs: undefined, replicas: undefined };
    latest.set(key, group);
    groups.push(group);
  }
  const shown = ({ first, replicas }: Group) =>
    replicas === undefined ? first : { ...first, replica: theOnlyOne(replicas) };
  return groups.map(shown).reverse();
}

/** Changes with other keys are others. No member has a line break: JSON would take most of the time of a list of thousands. */
function keyOf({ kind, subject, text, by, why, instance, noticedBy, atMs }: RecordedChange): string {
  const exactMs = noticedBy === undefined ? atMs : '';
  return `${kind}\n${subject ?? NULL}\n${text}\n${by ?? NULL}\n${why ?? NULL}\n${instance ?? NULL}\n${exactMs}`;
}

/** No text. */
const NULL = '\r';

function isOfGroup({ noticedBy, atMs }: RecordedChange, { first, noticedMs }: Group): boolean {
  if (noticedBy === undefined) return true;
  const earlierMs = first.noticedBy === noticedBy ? first.atMs : noticedMs?.get(noticedBy);
  return atMs - first.atMs < SAME_CHANGE_MS && (earlierMs ?? atMs) === atMs;
}

/** An older version does not know at which replica a change was made. */
function theOnlyOne(replicas: ReadonlySet<string | null>): string | null {
  const [replica = null, ...others] = [...replicas].filter((one) => one !== null);
  return others.length === 0 ? replica : null;
}

export function ofKind(changes: readonly RecordedChange[], kind: string): readonly RecordedChange[] {
  return changes.filter((one) => one.kind === kind);
}

export function shown({ atMs, kind, subject, text, by, why, replica }: RecordedChange) {
  return { at: new Date(atMs).toISOString(), kind, subject, text, by, why, replica };
}
