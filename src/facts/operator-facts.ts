import { Type } from 'typebox';
import { isMade, parsed, reasonText, timeMs } from './bounds.ts';
import type { Fact, FactKind } from './facts.ts';

/** What an operator sets at all replicas, or its removal. */
export interface OperatorFact extends Fact {
  readonly why: string;
  readonly by: string;
}

/** Files remain the source of truth: what is needed for longer belongs in one. */
export const LONGEST_MS = 7 * 86_400_000;

/** The last members of each message. */
export const OPERATOR_MEMBERS = {
  atMs: timeMs,
  untilMs: timeMs,
  why: reasonText,
  by: reasonText,
  isRemoved: Type.Optional(Type.Boolean()),
};

interface OperatorKind<T extends OperatorFact> extends Pick<FactKind<T>, 'topic' | 'most' | 'keyOf'> {
  /** The members of a message, in the order in which they are written. */
  readonly members: readonly string[];
  /** A message, if it matches its schema. */
  asMessage(value: unknown): T | undefined;
}

export function operatorKind<T extends OperatorFact>(kind: OperatorKind<T>): FactKind<T> {
  const { topic, most, keyOf, members, asMessage } = kind;
  return {
    ...{ topic, most, keyOf },
    write: (fact) => JSON.stringify(fact, [...members]),
    read(text, nowMs) {
      const read = asMessage(parsed(text));
      if (read === undefined) return undefined;
      const { atMs, untilMs } = read;
      return isMade(atMs, nowMs) && untilMs - atMs <= LONGEST_MS ? read : undefined;
    },
  };
}
