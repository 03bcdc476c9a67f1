/** What crosses from one stage of the gateway to the next. */
import type { BucketState, UncountedReason } from '../store/store.ts';
import type { Refusal } from './problems.ts';

/** The seven methods that the gateway serves; everything else is 405. */
export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** Contract section 8.1: reads and writes have buckets of their own; OPTIONS has none. */
export type OperationKind = 'read' | 'write';

/** The one canonical form of a request target: what is priced is what is forwarded. */
export interface Target {
  readonly path: string;
  /** With its leading `?`; empty when the request has none. */
  readonly search: string;
}

/** A priced operation, as the OpenAPI document has it; or the stand-in for one that it does not list. */
export interface Operation {
  /** `operationId`, or `METHOD path` where the document names none. */
  readonly id: string;
  readonly kind: OperationKind;
  /** Points, 1 to 10. */
  readonly cost: number;
  /** Contract section 8.1 rule 2: counted for the Person, not for an Account. */
  readonly personOnly: boolean;
  /** False when the document does not know this method and path. */
  readonly listed: boolean;
}

/** Who sent the request, proven by its token. */
export type Principal =
  | {
      readonly id: string;
      readonly type: 'Person';
      readonly account: string;
      readonly actsFor: ReadonlySet<string>;
    }
  | {
      readonly id: string;
      readonly type: 'ServiceAccount';
      readonly account: string;
      readonly actsFor: ReadonlySet<string>;
    }
  | { readonly id: string; readonly type: 'ServiceAccount'; readonly organization: string };

/** The principal and the target Account that it may act for. */
export interface Caller {
  readonly principal: Principal;
  readonly account: string;
  /** The Organization of the target Account, where it has one. */
  readonly organization: string | undefined;
}

/** One bucket with its limit in force, under the name that the RateLimit headers show. */
export interface NamedLimit {
  readonly name: string;
  readonly limit: number;
}

/** What a charge came to, and what the response headers have to say of it. */
export type Charged =
  | { readonly outcome: 'admitted'; readonly policy: string; readonly rateLimit: string }
  | { readonly outcome: 'uncounted'; readonly policy: string; readonly reason: UncountedReason }
  | { readonly outcome: 'denied'; readonly refusal: Refusal };

export type { BucketState };
