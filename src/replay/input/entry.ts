import type { Operation } from '../../stages/request-context.ts';

/** A request of the log that is charged, whatever the log's format. */
export interface LogEntry {
  /** Unix time of the charge, or the closest time in the log. */
  readonly atUs: number;
  /** Unix time of the line. Lines are written in about this order. */
  readonly loggedUs: number;
  /** Equal for requests of one operation. Its access decides whom of the following it is charged to. */
  readonly operation: Operation;
  /** Points; 0 for a response that has stated so, which limits in requests count all the same. `reserved` is then present. */
  readonly cost: number;
  /** The points that had to have room, where the request may have cost more or less in the end. */
  readonly reserved?: number | undefined;
  /** The names of the limits to charge instead of all, which a program chose. */
  readonly onlyLimits?: readonly string[] | undefined;
  /** Empty for a public operation. */
  readonly account: string;
  readonly organization: string | undefined;
  /** False if the limits of the Organization do not apply to the Account. Its plan and the day of its months do. */
  readonly hasOrganizationLimit?: boolean;
  /** Empty for a public operation. */
  readonly principal: string;
  /** The plan of the Account, if the log names one. */
  readonly plan?: string | undefined;
  /** The client's network; only for a public operation. */
  readonly address?: string | undefined;
  /** Whether the log says that a rate limit refused it. */
  readonly wasRefused: boolean;
  /** Whether the log says that the gateway served it without counting it. */
  readonly wasUncounted?: boolean | undefined;
  /** The bucket that refused it, if the log names one. */
  readonly refusedBy: string | undefined;
}

/** Whom an entry is charged to. */
export type PayerMembers = Pick<
  LogEntry,
  'account' | 'organization' | 'hasOrganizationLimit' | 'principal' | 'plan' | 'address'
>;

/** Why a line of the log is left out of a replay. */
export type Skipped =
  /** Not the line of a request. */
  | 'other'
  /** A request that spends nothing: refused before the charge, or OPTIONS. */
  | 'uncharged'
  /** A request that the log does not give whom to charge for. */
  | 'anonymous';

/** A line that should be an entry but cannot be read. */
export interface Unreadable {
  readonly problem: string;
}

/** Reads one line, without its line break. */
export type ReadLine = (line: string) => LogEntry | Skipped | Unreadable;

/** Finds the operations of a document. */
export interface OperationFinder {
  /** The operation of a request. Undefined if the request is not charged. */
  find(method: string, path: string): Operation | undefined;
  /** The operation with this id. Undefined if the document has none. */
  named(id: string): Operation | undefined;
}
