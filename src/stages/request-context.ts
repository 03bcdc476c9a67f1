/** A request on its way through the stages, and the types that they share. */
import type { Awaitable } from '../domain/awaitable.ts';
import type { Caller, PublicClient } from '../domain/caller.ts';
import type { Chargeable } from '../domain/limits/selection.ts';
import type { Access } from '../domain/operation.ts';
import type { Refusal } from '../domain/problems.ts';
import type { Priced, Reading, UnsettledReason } from '../domain/settlement/settlement.ts';
import type { LastDigest } from '../domain/token-digest.ts';
import type { RevokedToken } from '../facts/revocations.ts';
import type { Exchange } from '../http/exchange.ts';
import type { CorsAnswer } from '../http/message/fields/cors.ts';
import { clientNetwork, type Peer } from '../http/message/fields/forwarded.ts';
import type { TokenFault } from '../identity/identity-source.ts';
import type { RequestRules } from '../operations/listed-operation.ts';
import type { Hold } from '../store/in-flight/held-slots.ts';
import type { Charge, Decision, Settled, UncountedReason } from '../store/store.ts';
import type { PayerBuckets } from './buckets/buckets.ts';
import type { Filling, LimitLeft } from './buckets/payer-bucket.ts';
import type { Identified } from './identify.ts';

/** The canonical form of a request target, which is both charged and forwarded. */
export interface Target {
  readonly path: string;
  /** With its leading `?`; empty when the request has none. */
  readonly search: string;
  /** The path as it is compared with the declared ones, where `normalise` had to fold it. */
  readonly folded?: string | undefined;
}

/** An operation of the OpenAPI document, or the default for unlisted ones. */
export interface Operation extends Chargeable, Priced {
  /** Points. A public operation may cost 0: it is not charged. */
  readonly cost: number;
  /** `person`: counted for the Person, not for an Account (contract section 8.1 rule 2). `public`: for the client's address. */
  readonly access: Access;
  /** False if the document has no such method and path. */
  readonly listed: boolean;
  /** The rules for requests; undefined where nothing is validated. */
  readonly rules?: RequestRules | undefined;
}

/** Whether its requests are charged to a Person alone, to an Account, perhaps among others, or to an address. */
export function payingAccess({ access, isForBoth }: Pick<Operation, 'access' | 'isForBoth'>): Access {
  return isForBoth === true ? 'caller' : access;
}

/** What every charge reports, whatever its outcome. */
interface Reported {
  /** The RateLimit-Policy header. */
  readonly policy: string;
  /** The plan whose limits applied; undefined without one. */
  readonly plan?: string | undefined;
  /** The plan that the token or the directory names, and the limits file does not have. */
  readonly unknownPlan?: string | undefined;
  /** Buckets with a window of a minute or longer that are nearly or wholly used, where the store has decided and not this replica alone. */
  readonly filling?: readonly Filling[] | undefined;
}

/** A charge that was not made. It names the limit that needs the longest wait. */
export interface Denied extends Reported, LimitLeft {
  readonly outcome: 'denied';
  /** Empty if the caller is blocked, as is the policy: nothing was counted. */
  readonly rateLimit: string;
  /** Time until the cost fits. */
  readonly retryAfterUs: number;
  readonly refusal: Refusal;
  /** Why the store did not decide. This replica then refused by its own part of the limit. */
  readonly degraded?: UncountedReason | undefined;
}

/** The result of a charge, and the response headers that report it. */
export type Charged =
  | (Reported & {
      readonly outcome: 'admitted';
      readonly rateLimit: string;
      /** Buckets that are nearly empty. */
      readonly nearLimit: readonly LimitLeft[] | undefined;
      /** Buckets whose shadow limit would have refused this request. */
      readonly shadowDenied: readonly string[] | undefined;
    })
  | Denied
  | (Reported & { readonly outcome: 'uncounted'; readonly reason: UncountedReason });

/** Reads what a response has cost. */
export interface CostReader {
  /** Whether the response has ended. */
  readonly isEnded: boolean;
  /** What the response has stated until now. To be called once: what still comes is not read. */
  finish(): Awaitable<Reading>;
}

/** The ways in which a proxy, or a program, can ask whether a request may pass. */
export const PROTOCOLS = ['ext-authz', 'forward-auth', 'auth-request', 'decide'] as const;

/** What asks whether a request may pass: the exchange of a client or of a proxy, a program's question, or a command. */
export interface RequestSource {
  /** The other end of the connection; undefined where there is no connection for this request alone. */
  readonly peer?: Peer;
  /** Finds out what a charge would do, and spends nothing. */
  readonly isPeek?: boolean;
  /** Points instead of the operation's own. */
  readonly askedCost?: number | undefined;
  /** The names of the limits to charge instead of all. Each is one of this request. */
  readonly askedLimits?: readonly string[] | undefined;
  /** Whether the system has taken the whole response; undefined where there is none for this request alone. */
  readonly isAnswered?: boolean;
  /** For how long the limits on concurrent requests that apply to it are held; undefined for until its end is seen. */
  readonly heldMs?: number | undefined;
  /** The value of a field, whose name is in lower case. Requests with two Authorization headers were refused earlier. */
  field(name: string): string | undefined;
  /** The values of a field under any of its spellings. */
  valuesOf(name: string): readonly string[];
}

/** The ids that are taken from clients. They contain no characters that could forge a log line. */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * One request, and what is known of it. The stages write down what they find out; the access log, the metrics and the traces read it.
 * A refusal keeps the results of earlier stages.
 *
 * @template Source what it was read from, and where its response goes
 */
export class RequestContext<Source extends RequestSource = RequestSource> {
  readonly source: Source;
  requestId = '';
  /** The method that is charged: the request's own, or the one that a proxy asks about. */
  method: string;
  /** The target that is charged, as it was sent. */
  rawTarget: string;
  startedMs = 0;
  /** Behind trusted proxies, the address that they state. */
  clientAddress = '';
  /** The request's trace (W3C Trace Context). */
  traceparent = '';
  /** Undefined if requests are not traced. */
  spans: RequestSpans | undefined = undefined;
  /** Where and when it was forwarded; undefined unless HTTP metrics are recorded. */
  forwarded: { readonly origin: string; readonly atMs: number } | undefined = undefined;
  /** What read the request from its connection; undefined for a question within another request. */
  reader: Exchange['reader'] | undefined = undefined;
  /** How a proxy asked for this decision; undefined for a request that the gateway forwards itself. */
  protocol: (typeof PROTOCOLS)[number] | undefined = undefined;
  /** What the response says about pages of other origins; undefined if that is left to the upstream. */
  cors: CorsAnswer | undefined = undefined;
  /** Whether the end of the request is seen. Otherwise limits on concurrent requests do not apply. */
  seesEnd = false;

  target: Target | undefined = undefined;
  /** Missing for OPTIONS, which is neither authenticated nor charged. */
  operation: Operation | undefined = undefined;
  identified: Identified | undefined = undefined;
  /** Why its credential was refused. */
  tokenFault: TokenFault | undefined = undefined;
  /** The token, if it was refused because it is revoked. */
  revokedToken: RevokedToken | undefined = undefined;
  /** Undefined for a public operation. */
  caller: Caller | undefined = undefined;
  /** Of a public operation that is charged, or of an address that is blocked. */
  publicClient: PublicClient | undefined = undefined;
  /** Points to reserve instead of the operation's cost, which the request's body asked for. */
  reserved: number | undefined = undefined;
  charged: Charged | undefined = undefined;
  /** Undefined unless the upstream's response says what the request has cost. */
  responseCost: CostReader | undefined = undefined;
  /** Why what it has reserved is what it has cost, although it was to be settled. */
  unsettled: UnsettledReason | undefined = undefined;
  /** The buckets that were charged, and what the store decided on each. */
  due: PayerBuckets | undefined = undefined;
  decision: Decision | undefined = undefined;
  /** The charge that was decided. */
  asked: Charge | undefined = undefined;
  /** Points that the request has cost in the end; undefined until it is settled. */
  settledCost: number | undefined = undefined;
  /** Whether all was given back, also in limits that count requests. A response that has stated a cost of 0 counts in these. */
  isRefunded = false;
  /** What the store answers to the settlement, for one receiver; undefined if the request has cost what it was charged. */
  settling: Awaitable<Settled> | undefined = undefined;
  /** When the store was called, by `performance.now()`. */
  chargeAskedMs: number | undefined = undefined;
  chargeMs: number | undefined = undefined;
  /** What the request holds until it ends, if limits on concurrent requests apply to it. */
  hold: Hold | undefined = undefined;
  refusal: Refusal | undefined = undefined;
  /** How long it waited for its turn at the upstream; undefined if it did not. */
  queuedMs: number | undefined = undefined;
  upstreamStatus: number | undefined = undefined;
  upstreamMs: number | undefined = undefined;
  /** Code of the error that replaced or truncated the upstream's response. */
  upstreamError: string | undefined = undefined;
  /** What was wrong with a response that was refused. */
  upstreamErrorDetail: string | undefined = undefined;

  constructor(source: Source, method: string, rawTarget: string) {
    this.source = source;
    this.method = method;
    this.rawTarget = rawTarget;
  }

  /** The network that limits by address count, and that a provider of identities gets. */
  get clientNetwork(): string {
    return clientNetwork(this.clientAddress);
  }

  /** Of the connection. */
  get lastDigest(): LastDigest | undefined {
    return this.source.peer?.lastDigest;
  }

  /** @throws TypeError if the target has not been normalised */
  get canonicalTarget(): Target {
    if (this.target === undefined) throw new TypeError('the request has not been normalised');
    return this.target;
  }
}

/** Why a request was refused, or not counted; undefined if it was neither. */
export function reasonOf({ charged, tokenFault, refusal }: RequestContext): string | undefined {
  return charged?.outcome === 'uncounted' ? charged.reason : (tokenFault ?? refusal?.code);
}

/** The points that a request is charged when it is admitted; 0 without an operation. */
export function costAtAdmission({ reserved, operation }: RequestContext): number {
  return reserved ?? operation?.cost ?? 0;
}

/** The points that an admitted request has cost; 0 for a decision that a program holds, because its cost is counted when the hold has ended. */
export function spentBy(request: RequestContext): number {
  return request.source.heldMs === undefined ? (request.settledCost ?? costAtAdmission(request)) : 0;
}

/** The spans of one request. */
export interface RequestSpans {
  /** Names the span of the request. */
  readonly traceparent: string;
  /**
   * Starts the span of the call to the upstream. Returns the header fields that name it: name, value, name, value.
   *
   * @param origin the upstream's, such as `http://127.0.0.1:3000`
   * @param path what is requested of it, without the query
   */
  forward(origin: string, path: string): readonly string[];
  /** Ends the spans. The span of the charge is recorded now, from the times in the context. */
  end(context: RequestContext, status: number, totalMs: number): void;
}
