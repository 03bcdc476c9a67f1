/** What crosses from one stage of the gateway to the next. */
import type { Caller } from '../domain/caller.ts';
import type { OperationKind } from '../domain/operation.ts';
import type { UncountedReason } from '../store/store.ts';
import type { RequestRules } from '../validation/rules.ts';
import type { Refusal } from './problems.ts';

/** The one canonical form of a request target: what is priced is what is forwarded. */
export interface Target {
  readonly path: string;
  /** With its leading `?`; empty when the request has none. */
  readonly search: string;
}

/** A priced operation as the OpenAPI document has it, or the stand-in for one that it does not list. */
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
  /** What a request must satisfy to be forwarded; undefined where nothing is validated. */
  readonly rules?: RequestRules | undefined;
}

/** A charge that was spent, and may be forwarded. */
export interface Admitted {
  readonly outcome: 'admitted';
  readonly policy: string;
  readonly rateLimit: string;
  /** Buckets that are nearly empty now. */
  readonly nearLimit: readonly string[] | undefined;
  /** Buckets whose tried-out (shadow) limit would have refused this request. */
  readonly shadowDenied: readonly string[] | undefined;
}

/** What a charge came to, and what the response headers have to say of it. */
export type Charged =
  | Admitted
  | {
      readonly outcome: 'denied';
      readonly policy: string;
      readonly rateLimit: string;
      /** The bucket that needs the longest wait. */
      readonly bucket: string;
      readonly refusal: Refusal;
    }
  | { readonly outcome: 'uncounted'; readonly policy: string; readonly reason: UncountedReason };

/** What has been found out; each stage adds its part, so that a refusal leaves what the stages before it found. */
export interface Findings {
  /** Missing for OPTIONS, which is neither authenticated nor charged. */
  operation?: Operation;
  caller?: Caller;
  charged?: Charged;
  /** When the store was asked, as `performance.now()` gives it. */
  chargeAskedMs?: number;
  chargeMs?: number;
}

/** What the gateway knows of one request; each stage adds its part, and the access log and the metrics read it. */
export interface RequestContext extends Findings {
  readonly requestId: string;
  readonly method: string;
  readonly startedMs: number;
  target?: Target;
  /** Read in full, because it had to be validated; otherwise it streams. */
  body?: Buffer;
  refusal?: Refusal;
  upstreamStatus?: number;
  upstreamMs?: number;
  /** Code of the error that took the place of the upstream's response, or cut it short. */
  upstreamError?: string;
  /** What was wrong with a response that was refused. */
  upstreamErrorDetail?: string;
}
