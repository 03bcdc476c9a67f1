/** The life of a request. It is the same at the port for clients and the port for decisions, and for both sources of an exchange. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Awaitable, andThen, isLate } from '../domain/awaitable.ts';
import { Refusal } from '../domain/problems.ts';
import type { Exchange } from '../http/exchange.ts';
import { corsAnswer } from '../http/message/fields/cors.ts';
import type { TrustedProxies } from '../http/message/fields/forwarded.ts';
import { NodeExchange, turnOf } from '../http/server/node/node-exchange.ts';
import { createUnlistedLog } from '../observe/log/events.ts';
import { RandomTexts, traceparentFrom } from '../observe/log/traceparent.ts';
import { runStages, type Stage } from '../stages/decide.ts';
import { normalise } from '../stages/normalise.ts';
import { REQUEST_ID, RequestContext } from '../stages/request-context.ts';
import type { GatewayDependencies } from './dependencies.ts';

/** A request of a port. */
export type PortRequest = RequestContext<Exchange>;

/** What the stages of a port share. */
export interface PortDependencies extends GatewayDependencies {
  readonly trusted: TrustedProxies;
  /** Whether the event loop is so late that new requests are refused. */
  isBusy(): boolean;
}

/** One step of a request of a port: a refusal ends it, and so does an answer. */
export type PortStage<Shared> = Stage<Exchange, Shared, Refusal | 'answered'>;

/** What differs between ports. */
interface Port<Shared extends PortDependencies> {
  /** Every stage in order. The last one answers. */
  readonly stages: readonly PortStage<Shared>[];
  readonly shared: Shared;
  /** Message of the log for an error that was thrown. */
  readonly failure: string;
  /** Adds what this port knows of a new request. */
  begin(request: PortRequest): void;
  refuse(request: PortRequest, refusal: Refusal): void;
  /** Settles what a request has cost when its response has ended. */
  end?(request: PortRequest): Awaitable<void>;
}

/** Where every request of a port enters. */
export class Entrance<Shared extends PortDependencies> {
  readonly #port: Port<Shared>;
  readonly #noteUnlisted: (method: string, path: string) => void;
  /** Requests whose clients left before the store had decided. They are finished when it has, because they may be charged. */
  readonly #undecided = new Set<PortRequest>();

  constructor(port: Port<Shared>) {
    this.#port = port;
    this.#noteUnlisted = createUnlistedLog(port.shared.log);
  }

  /** The handler of Fastify's route, for what Node's server reads. */
  readonly serve = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack();
    const turn = turnOf(request.raw);
    if (!turn.connection.isClosing) this.take(new NodeExchange(turn));
  };

  readonly take = (exchange: Exchange): void => {
    const { stages, shared } = this.#port;
    const request = new RequestContext(exchange, exchange.head.method, exchange.head.target);
    try {
      this.#begin(request);
      const end = runStages(stages, request, shared);
      if (isLate(end)) this.#endLater(request, end);
      else if (end instanceof Refusal) this.#port.refuse(request, end);
    } catch (error) {
      this.#fail(request, error);
    }
  };

  #endLater(request: PortRequest, end: PromiseLike<Refusal | 'answered' | undefined>): void {
    const refuse = (late: Refusal | 'answered' | undefined) => {
      if (late instanceof Refusal) this.#port.refuse(request, late);
      if (this.#undecided.delete(request)) this.#finish(request);
    };
    end.then(refuse).then(undefined, (error) => this.#fail(request, error));
  }

  /** Adds what the log and the traces need. The request is counted and logged when it ends, for whatever reason. */
  #begin(request: PortRequest): void {
    const { shared } = this.#port;
    const { tracing, trusted, cors } = shared;
    const { source: exchange } = request;
    const { head } = exchange;
    exchange.onClosed = () => this.#finish(request);
    request.startedMs = performance.now();
    request.requestId = requestIdFrom(head.field('x-request-id'));
    request.reader = exchange.reader;
    this.#port.begin(request);
    request.spans = tracing?.begin(head, request.method, request.startedMs, trusted.originOf(exchange));
    request.traceparent = request.spans?.traceparent ?? traceparentFrom(head.field('traceparent'));
    request.clientAddress = trusted.addressOf(exchange);
    if (cors.origins.length > 0) request.cors = corsAnswer(cors, head.field('origin'));
    if (shared.isDraining()) exchange.endKeepAlive();
  }

  #finish(request: PortRequest): void {
    const { shared } = this.#port;
    const { source } = request;
    request.hold?.end();
    if (request.chargeAskedMs !== undefined && request.charged === undefined) {
      this.#undecided.add(request);
      return;
    }
    if (isCutShort(request)) request.refusal = ABANDONED;
    const { protocol, refusal, caller, operation, target } = request;
    const { status } = source;
    // Only for authenticated callers, so that a stranger cannot fill the log.
    if (caller !== undefined && operation?.listed === false) {
      shared.observer.unlistedOperation(request.method);
      this.#noteUnlisted(request.method, target?.path ?? '');
    }
    // A proxy may be sent another status; its client gets the refusal's own.
    const isDecision = protocol !== undefined && status !== 0;
    const finalStatus = isDecision ? (refusal?.status ?? status) : status;
    if (protocol === undefined) shared.httpMetrics?.record(request, status, shared.trusted.schemeOf(source));
    const settling = this.#port.end?.(request);
    if (settling === undefined) finishRequest(request, finalStatus, shared);
    else andThen(settling, () => finishRequest(request, finalStatus, shared));
  }

  #fail(request: PortRequest, error: unknown): void {
    const { shared, failure, refuse } = this.#port;
    const { source: exchange, requestId } = request;
    shared.log.error({ err: error, requestId }, failure);
    request.chargeAskedMs = undefined;
    // A failure counts, also of a request whose questions are counted instead.
    exchange.onClosed ??= () => this.#finish(request);
    if (exchange.hasBegun || exchange.isEnded) exchange.abort();
    else refuse(request, FAILED);
    if (this.#undecided.delete(request)) this.#finish(request);
  }
}

/** Of a request whose client left before it could be served. */
export const ABANDONED = new Refusal('BadRequest', 'The request was aborted.', { closes: true });

/** Whether the client left before the request was charged, forwarded or refused. */
function isCutShort({ source, charged, refusal }: PortRequest): boolean {
  return source.status === 0 && source.taker === undefined && charged === undefined && refusal === undefined;
}

/** Counts and logs a request that has ended. */
export function finishRequest(
  request: RequestContext,
  status: number,
  { observer, accessLog }: GatewayDependencies,
): void {
  const nowMs = performance.now();
  const totalMs = nowMs - request.startedMs;
  observer.requestFinished(request, status, totalMs);
  accessLog?.write(request, status, totalMs, nowMs);
  request.spans?.end(request, status, totalMs);
}

/** UUIDs of version 4 (RFC 9562 section 5.4). */
const newRequestIds = new RandomTexts('xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx');

/** The request id of an `X-Request-Id` header if it is valid, otherwise a new one. */
function requestIdFrom(header: string | undefined): string {
  return header !== undefined && REQUEST_ID.test(header) ? header : newRequestIds.next();
}

const TOO_MANY = new Refusal('ServiceUnavailable', 'The gateway has too many connections.', { closes: true });
const TOO_BUSY = new Refusal('ServiceUnavailable', 'The gateway is too busy.');
const FAILED = new Refusal('ServiceUnavailable', 'The gateway could not handle this request.');

/** Refuses a request on a connection above the port's limit, and one that its parser could not read to the end. */
export function refuseUnreadable({ source }: PortRequest): Refusal | undefined {
  return source.isSurplus ? TOO_MANY : source.brokenBy;
}

/** An immediate 503, uncharged, and never a 429. */
export function shedLoad(_request: PortRequest, { isBusy }: PortDependencies): Refusal | undefined {
  return isBusy() ? TOO_BUSY : undefined;
}

/** Logs that `shedLoad` begins. It does not ask whose requests are too many, so it is the last resort. */
export function warnOf(log: GatewayDependencies['log']): (delayMs: number) => void {
  return (delayMs) =>
    log.warn(
      { eventLoopDelayMs: Math.round(delayMs) },
      'the gateway is overloaded: every new request gets a 503',
    );
}

/** Writes the canonical target to the request, or returns why there is none. */
export function normaliseTarget(
  request: PortRequest,
  { operations, upstream }: PortDependencies,
): Refusal | undefined {
  const { method, rawTarget } = request;
  const target = normalise(rawTarget, upstream.pathProfile, (folded) =>
    operations.servesSlash(method, folded),
  );
  if (target instanceof Refusal) return target;
  request.target = target;
  return undefined;
}
