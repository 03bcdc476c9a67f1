import type { OperationKind } from '../../domain/operation.ts';

/** A request of the log that is charged, whatever the log's format. */
export interface Entry {
  /** Unix time of the charge, or the closest time in the log. */
  readonly atUs: number;
  /** Unix time of the line. Lines are written in about this order. */
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
  /** The bucket that refused it, if the log names one. */
  readonly refusedBy: string | undefined;
}

/** Why a line of the log is left out of a replay. */
export type Skipped =
  /** Not the line of a request. */
  | 'other'
  /** A request that spends nothing: refused before the charge, or OPTIONS. */
  | 'uncharged'
  /** A request without an Account in the log. */
  | 'anonymous';

/** A line that should be an entry but cannot be read. */
export interface Unreadable {
  readonly problem: string;
}

/** Reads one line, without its line break. */
export type ReadLine = (line: string) => Entry | Skipped | Unreadable;

/** The operation of a request, with its price. Undefined if the request is not charged. */
export type PriceOf = (method: string, path: string) => Price | undefined;

export interface Price {
  readonly kind: OperationKind;
  readonly cost: number;
  readonly personOnly: boolean;
}
