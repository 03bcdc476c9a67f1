import type { OperationKind } from '../../domain/operation.ts';

/** A request of the log that is charged, whatever the log's format. */
export interface Entry {
  /** Unix time of the charge, or as near to it as the log gives. */
  readonly atUs: number;
  /** Unix time of the line: lines are written in about this order. */
  readonly loggedUs: number;
  readonly kind: OperationKind;
  /** Points. */
  readonly cost: number;
  /** Charged to the Person `principal`, not to the Account. */
  readonly personOnly: boolean;
  readonly account: string;
  /** The Organization that is charged as well, if any. */
  readonly organization: string | undefined;
  readonly principal: string;
  /** Whether the log says that a rate limit refused it. */
  readonly wasRefused: boolean;
  /** The bucket that refused it, where the log names one. */
  readonly refusedBy: string | undefined;
}

/** Why a line of the log has no part in a replay. */
export type Skipped =
  /** Not the line of a request. */
  | 'other'
  /** A request that spends nothing: refused before the charge, or OPTIONS. */
  | 'uncharged'
  /** A request of nobody that the log names. */
  | 'anonymous';

/** A line that should have been an entry and cannot be read. */
export interface Unreadable {
  readonly problem: string;
}

/** Reads one line, without its line break. */
export type ReadLine = (line: string) => Entry | Skipped | Unreadable;

/** The price of a request: its operation, or undefined where it is not charged. */
export type PriceOf = (method: string, path: string) => Price | undefined;

export interface Price {
  readonly kind: OperationKind;
  readonly cost: number;
  readonly personOnly: boolean;
}
