/** The types that stages share. */
import type { Caller, PublicClient } from '../domain/caller.ts';
import type { FieldValues } from '../domain/field-name.ts';
import type { Selectable } from '../domain/limits/selection.ts';
import type { Access } from '../domain/operation.ts';
import type { Refusal } from '../domain/problems.ts';
import type { RevokedToken } from '../facts/revocations.ts';
import type { CorsAnswer } from '../http/message/fields/cors.ts';
import type { RequestRules } from '../operations/validation/rules.ts';
import type { UncountedReason } from '../store/store.ts';
import type { Filling } from './buckets/filling.ts';
import type { NamedLimit } from './buckets/payer-bucket.ts';

/** The canonical form of a request target, which is both charged and forwarded. */
export interface Target {
  readonly path: string;
  /** With its leading `?`; empty when the request has none. */
  readonly search: string;
  /** The path as it is compared with the declared ones, where `normalise` had to fold it. */
  readonly folded?: string | undefined;
}

/** An operation of the OpenAPI document, or the default for unlisted ones. */
export interface Operation extends Selectable {
  /** Points, 1 to 10. A public operation may cost 0: it is not charged. */
  readonly cost: number;
  /** `person`: counted for the Person, not for an Account (contract section 8.1 rule 2). `public`: for the client's address. */
  readonly access: Access;
  /** False if the document has no such method and path. */
  readonly listed: boolean;
  /** The rules for requests; undefined where nothing is validated. */
  readonly rules?: RequestRules | undefined;
}

/** A bucket that is nearly empty after a charge. */
export interface NearLimit extends NamedLimit {
  /** The Account, Organization, principal or address whose bucket it is. */
  readonly owner: string;
  readonly remaining: number;
}

/** What every charge reports, whatever its outcome. */
interface Reported {
  /** The RateLimit-Policy header. */
  readonly policy: string;
  /** The plan whose limits applied; undefined without one. */
  readonly plan?: string | undefined;
  /** The plan that the token or the directory names, and the limits file does not have. */
  readonly unknownPlan?: string | undefined;
}

/** What the store has decided, and not this replica by itself. */
interface Counted extends Reported {
  /** Buckets with a window of a minute or longer that are nearly or wholly used. */
  readonly filling?: readonly Filling[] | undefined;
}

/** A charge that was spent. */
export interface Admitted extends Counted {
  readonly outcome: 'admitted';
  readonly rateLimit: string;
  /** Buckets that are nearly empty. */
  readonly nearLimit: readonly NearLimit[] | undefined;
  /** Buckets whose shadow limit would have refused this request. */
  readonly shadowDenied: readonly string[] | undefined;
}

/** A charge that was not made. It names the limit that needs the longest wait. */
export interface Denied extends Counted, NamedLimit {
  readonly outcome: 'denied';
  /** Empty for whoever is blocked, as is the policy: nothing was counted. */
  readonly rateLimit: string;
  /** Whose bucket it is, or who is blocked. */
  readonly owner: string;
  /** Points left in that bucket. */
  readonly remaining: number;
  /** Time until the cost fits. */
  readonly retryAfterUs: number;
  readonly refusal: Refusal;
  /** Why the store did not decide. This replica then refused by its own part of the limit. */
  readonly degraded?: UncountedReason | undefined;
}

/** The result of a charge, and the response headers that report it. */
export type Charged =
  | Admitted
  | Denied
  | (Reported & { readonly outcome: 'uncounted'; readonly reason: UncountedReason });

/** The results of the stages that have run; a refusal keeps those of earlier stages. */
export interface Findings {
  /** Missing for OPTIONS, which is neither authenticated nor charged. */
  operation?: Operation | undefined;
  /** The token, if it was refused because it is revoked. */
  revokedToken?: RevokedToken | undefined;
  /** Undefined for a public operation. */
  caller?: Caller | undefined;
  /** Of a public operation that is charged, or of an address that is blocked. */
  publicClient?: PublicClient | undefined;
  charged?: Charged | undefined;
  /** When the store was called, by `performance.now()`. */
  chargeAskedMs?: number | undefined;
  chargeMs?: number | undefined;
}

/** The ways in which a proxy, or a program, can ask whether a request may pass. */
export const PROTOCOLS = ['ext-authz', 'forward-auth', 'auth-request', 'decide'] as const;

export type DecisionProtocol = (typeof PROTOCOLS)[number];

/** What may read a request from its connection: the edge reads those that are plain. */
export const READERS = ['edge', 'node'] as const;

export type RequestReader = (typeof READERS)[number];

/** What is known of a request, which the access log, the metrics and the traces read. */
export interface RequestContext extends Findings {
  readonly requestId: string;
  readonly method: string;
  readonly startedMs: number;
  /** Behind trusted proxies, the address that they state. */
  readonly clientAddress: string;
  /** The request's trace (W3C Trace Context). */
  readonly traceparent: string;
  /** Undefined if requests are not traced. */
  readonly spans?: RequestSpans | undefined;
  /** What read the request from its connection; undefined for a question within another request. */
  readonly reader?: RequestReader;
  /** How a proxy asked for this decision; undefined for a request that the gateway forwards itself. */
  readonly protocol?: DecisionProtocol | undefined;
  /** What the response says about pages of other origins; undefined if that is left to the upstream. */
  readonly cors?: CorsAnswer | undefined;
  target?: Target | undefined;
  refusal?: Refusal | undefined;
  upstreamStatus?: number | undefined;
  upstreamMs?: number | undefined;
  /** Code of the error that replaced or truncated the upstream's response. */
  upstreamError?: string | undefined;
  /** What was wrong with a response that was refused. */
  upstreamErrorDetail?: string | undefined;
}

/** Records the spans of requests. */
export interface Tracing {
  /** Starts the span of a request, as a child of the span that its `traceparent` names. */
  begin(headers: FieldValues, method: string, startedMs: number): RequestSpans;
}

/** The spans of one request. */
export interface RequestSpans {
  /** Names the span of the request. */
  readonly traceparent: string;
  /**
   * Starts the span of the call to the upstream. Returns the header fields that name it: name, value, name, value.
   *
   * @param origin the upstream's, such as `http://127.0.0.1:3000`
   */
  forward(origin: string): readonly string[];
  /** Ends the spans. The span of the charge is recorded now, from the times in the context. */
  end(context: RequestContext, status: number, totalMs: number): void;
}
