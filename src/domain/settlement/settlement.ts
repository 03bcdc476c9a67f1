import type { JsonPointer } from './json-pointer.ts';

/** How many points a request reserves when it is admitted, read from its JSON body. */
export interface Reserve {
  readonly json: JsonPointer;
  /** The most that is reserved, whatever the body says. */
  readonly most: number;
  /** Larger bodies are not read. */
  readonly maxBodyBytes: number;
  /** The operations of a path that has several: the largest of their reservations counts. Undefined for one operation. */
  readonly meanings?: readonly Priced[];
}

/** Where the final cost is found. */
export type Settle =
  | SettleSource
  /** The most that one of several says, for a path that has several operations. One that says nothing costs at least the reservation. */
  | { readonly kind: 'most'; readonly of: readonly SettleSource[]; readonly keepsReservation: boolean };

export type SettleSource =
  | { readonly kind: 'json'; readonly json: JsonPointer }
  /** A field or a trailer of the response, in lower case. */
  | { readonly kind: 'header'; readonly header: string }
  /** A point for each so many bytes of the response's body, begun ones too. */
  | { readonly kind: 'bytes'; readonly bytes: number };

/** How requests of an operation are settled, whose cost is not final when they are admitted. */
export interface SettlementRules {
  /** Undefined if the operation's cost is reserved. */
  readonly reserve: Reserve | undefined;
  /** Undefined if the reservation is the final cost. */
  readonly settle: Settle | undefined;
  /** The statuses of responses that cost nothing: `404`, or `5xx` for a class. */
  readonly refundOn: ReadonlySet<string>;
}

/** An operation and its cost. */
export interface Priced {
  readonly id: string;
  readonly cost: number;
  /** Undefined if the cost is final when a request is admitted. */
  readonly settlement?: SettlementRules | undefined;
}

/** Whether a response with this status costs nothing. */
export function isRefunded({ refundOn }: SettlementRules, status: number): boolean {
  return refundOn.has(`${status}`) || refundOn.has(`${Math.floor(status / 100)}xx`);
}

/** Points of one request. */
export const MAX_POINTS = 2_000_000_000;

/** A number as a cost, rounded up; undefined for other values, negative numbers, and numbers above any limit. */
export function pointsOf(value: unknown): number | undefined {
  if (typeof value !== 'number' || !(value >= 0 && value <= MAX_POINTS)) return undefined;
  // Without the sign of -0.
  return Math.ceil(value) + 0;
}

/** A point for each so many bytes, begun ones too. More bytes than any limit has points cost the most that a request can cost. */
export function pointsOfBytes(bytes: number, bytesPerPoint: number): number {
  return Math.min(MAX_POINTS, Math.ceil(bytes / bytesPerPoint));
}

/** A number as JSON writes it (RFC 8259 section 6). Longer ones are no costs. */
const NUMBER = /^-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?:[eE][+-]?\d{1,9})?$/;

/** The points that a text states; undefined as for `pointsOf`. */
export function pointsOfText(text: string): number | undefined {
  return NUMBER.test(text) ? pointsOf(Number(text)) : undefined;
}

/** Why a request that was to be settled costs what it has reserved; the `reason` label of `weir_unsettled_total`. */
export const UNSETTLED_REASONS = [
  /** The response has no such field, trailer or member. */
  'missing',
  /** It is no number of 0 or more, or one above any limit. */
  'invalid',
  /** It was not found within 1 MiB. */
  'too-long',
  /** All memory for bodies that are read was in use. */
  'memory',
  /** The body has a coding that Weir does not know, or is not what its coding says. */
  'encoding',
  /** The upstream broke off. */
  'cut',
  /** The client left before the response had ended. */
  'abandoned',
  /** Weir itself answered, so there is no response of the upstream. */
  'unanswered',
  /** A tunnel has no body. */
  'tunnel',
] as const;

export type UnsettledReason = (typeof UNSETTLED_REASONS)[number];

/** What became of decisions that programs wanted to hold, and of their receipts; the `event` label of `weir_receipts_total`. */
export const RECEIPT_EVENTS = [
  /** A decision is held. */
  'issued',
  /** There was nothing to hold, or no receipt could be written: the decision was not counted, or is free. */
  'none',
  'settled',
  /** It had been settled before. */
  'already',
  /** The hold had ended. */
  'ended',
  /** The store did not answer within a second. */
  'pending',
  /** The settlement was given up. */
  'dropped',
  /** No replica has issued it. */
  'invalid',
  /** The key of receipts is unknown. */
  'unavailable',
] as const;

/** What a response states of its cost so far. */
export interface Reading {
  /** Undefined if it has stated no points. */
  readonly points: number | undefined;
  /** Why these points are not what it has cost in the end; undefined if they are. */
  readonly problem: UnsettledReason | undefined;
}
