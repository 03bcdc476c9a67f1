import { type Static, type TObject, Type } from 'typebox';
import type { FactKind } from './facts.ts';
import { hostName, isMade, matching, parsed, reasonText, timeMs } from './message-bounds.ts';

/** Who changes something, and why. */
export interface ChangeReason {
  readonly why: string;
  readonly by: string;
}

/** Files remain the source of truth: what is needed for longer belongs in one. */
export const LONGEST_MS = 7 * 86_400_000;

/** The members of each message that do not depend on what it is about. */
export const OPERATOR_MEMBERS = {
  atMs: timeMs,
  untilMs: timeMs,
  why: reasonText,
  by: reasonText,
  isRemoved: Type.Optional(Type.Boolean()),
  replica: Type.Optional(hostName),
};

/**
 * The kind of facts whose messages are JSON that matches a schema.
 *
 * @param message has the members in the order in which they are written
 */
export function operatorKind<S extends TObject<typeof OPERATOR_MEMBERS>>(
  message: S,
  kind: Omit<FactKind<Static<S>>, 'write' | 'read'>,
): FactKind<Static<S>> {
  const asMessage = matching(message);
  const members = Object.keys(message.properties);
  return {
    ...kind,
    write: (fact) => JSON.stringify(fact, members),
    read(text, nowMs) {
      const read = asMessage(parsed(text));
      if (read === undefined) return undefined;
      const { atMs, untilMs } = read;
      return isMade(atMs, nowMs) && untilMs - atMs <= LONGEST_MS ? read : undefined;
    },
  };
}
