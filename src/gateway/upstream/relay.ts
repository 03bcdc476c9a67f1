import { Readable } from 'node:stream';
import type { Traffic } from '../../domain/operation.ts';
import type { Refusal } from '../../domain/problems.ts';
import { QUEUE_TIMEOUT, TUNNELS_BUSY, UPLOAD_STALLED } from '../../domain/problems.ts';
import type {
  ChunkMemory,
  Repeat,
  ResponseHandler,
  Transfer,
  UpstreamRequest,
} from '../../http/client/request.ts';
import type { Exchange, Taker } from '../../http/exchange.ts';
import { HEADERS_TIMEOUT, UpstreamError } from '../../http/message/errors.ts';
import { addCors } from '../../http/message/fields/cors.ts';
import type { FieldLines } from '../../http/message/head/field-lines.ts';
import type { FieldName } from '../../http/message/head/field-names.ts';
import type { FieldSection } from '../../http/message/head/field-section.ts';
import type { ResponseHead } from '../../http/message/head/response-head.ts';
import { type ResponseChanges, responseLines } from '../../http/message/headers.ts';
import { BodyError } from '../../http/message/whole-body.ts';
import { addGatewayFields, respond } from '../../stages/respond.ts';
import { refund } from '../../stages/settle.ts';
import type { Store } from '../../store/store.ts';
import type { PortDependencies, PortRequest } from '../entrance.ts';
import { type ResponseCost, readCost } from '../response-cost/response-cost.ts';
import { codeOf, isRepeatable, isUnsent, refusalOf, UPSTREAM_BUSY } from './failures.ts';
import type { StreamedRequest, WatchedUpload } from './stalled-uploads.ts';
import type { Guest, TurnedAway } from './turns/guest.ts';
import type { Visit } from './turns/turns.ts';
import type { Upstream } from './upstreams.ts';

/** Joining a body of this length to its head costs less than a second piece to write. */
const MAX_JOINED_BYTES = 16_384;

/** Copies one upstream response to the client, chunk by chunk, as fast as the slower of the two. */
export class Relay implements ResponseHandler, ResponseChanges, Taker, Guest, StreamedRequest {
  protected readonly context: PortRequest;
  protected readonly exchange: Exchange;
  readonly #upstream: Upstream;
  readonly #baseUrl: string;
  readonly #store: Store;
  readonly traffic: Traffic;
  readonly payerId: string;
  upload: WatchedUpload | undefined;
  #sentMs = 0;
  #visit: Visit | undefined;
  #request: UpstreamRequest;
  #transfer: Transfer | undefined;
  #head: ResponseHead | undefined;
  /** Undefined if the cost of the operation does not depend on its response. */
  #cost: ResponseCost | undefined;
  #isRepeated = false;

  constructor(
    upstream: Upstream,
    request: Omit<UpstreamRequest, 'handler'>,
    context: PortRequest,
    { baseUrl, store }: PortDependencies,
  ) {
    const exchange = context.source;
    this.context = context;
    this.exchange = exchange;
    this.#upstream = upstream;
    this.traffic = trafficOf(context);
    this.payerId = payerIdOf(context);
    this.#baseUrl = baseUrl;
    this.#store = store;
    const { method, target, host, lines, body, bodyLength, upgrade } = request;
    // Without a spread, which costs 0.5 µs here.
    this.#request = {
      method,
      target,
      host,
      lines,
      body,
      bodyLength,
      upgrade,
      handler: this,
      place: undefined,
    };
    exchange.taker = this;
    if (body instanceof Readable) body.on('error', (error) => this.#onBodyError(error));
  }

  /**
   * Sends the request when its turn has come; the response, or a 503 in its place, goes to the client.
   *
   * @returns why the request gets no turn; undefined if it does or waits
   */
  start(): Refusal | undefined {
    const nowMs = performance.now();
    this.#visit = this.#upstream.turns.enter(this, nowMs);
    if (this.#visit === undefined) {
      refund(this.context, this.#store);
      return UPSTREAM_BUSY;
    }
    if (this.#visit.state === 'present') this.#begin(nowMs);
    return undefined;
  }

  onTurn(waitedMs: number): void {
    this.context.queuedMs = waitedMs;
    this.#begin(performance.now());
  }

  onTurnedAway(reason: TurnedAway): void {
    const { context } = this;
    context.queuedMs = performance.now() - (this.#visit?.sinceMs ?? 0);
    refund(context, this.#store);
    respond(context, reason === 'late' ? QUEUE_TIMEOUT : UPSTREAM_BUSY, this.#baseUrl);
  }

  #begin(nowMs: number): void {
    this.context.hold?.share();
    if (this.#request.body instanceof Readable) this.#upstream.uploads.add(this);
    this.#dispatch(nowMs);
  }

  #dispatch(nowMs: number): void {
    this.#sentMs = nowMs;
    this.#upstream.pool.dispatch(this.#request);
  }

  /** To be called once, when the upstream is done with the request. */
  protected leave(): void {
    this.detach();
    this.context.hold?.end();
    if (this.#request.body instanceof Readable) this.#upstream.uploads.remove(this);
    if (this.#visit !== undefined) this.#upstream.turns.leave(this.#visit);
  }

  /** From here on, a client that leaves does not abort the request. */
  protected detach(): void {
    this.#transfer = undefined;
  }

  get isTunnel(): boolean {
    return this.#request.upgrade !== undefined;
  }

  onConnection(transfer: Transfer): void {
    this.#transfer = transfer;
  }

  /** An interim response is forwarded as it is (RFC 9110 section 15.2). */
  onInterim({ status, fields, connection }: ResponseHead): void {
    this.exchange.sendInterim(status, responseLines(fields, connection, status));
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    const { context, exchange } = this;
    const nowMs = this.noteHead(head);
    // An error may come at once because the upstream has too much to do.
    if (head.status < 500) this.#noteLatency(nowMs);
    if (context.operation?.settlement !== undefined) this.#cost = readCost(context, head);
    const lines = this.linesOf(head);
    if (context.cors !== undefined) addCors(lines, context.cors, head.fields);
    if (exchange.isUploadUnfinished) exchange.makeLast();
    exchange.begin(head.status, lines);
    if (this.#visit !== undefined) this.#upstream.noteAnswered(this.#visit);
  }

  /** @returns when the head of the response came */
  protected noteHead({ status }: ResponseHead): number {
    const nowMs = performance.now();
    this.context.upstreamMs = nowMs - this.#sentMs;
    this.context.upstreamStatus = status;
    return nowMs;
  }

  /** A tunnel has no latency, and an upload has its client's. */
  #noteLatency(nowMs: number): void {
    if (this.isTunnel || this.#request.body instanceof Readable) return;
    this.#upstream.noteLatency(this.#sentMs, nowMs);
  }

  /** The fields that the client gets, without CORS fields. */
  protected linesOf({ fields, connection, status }: ResponseHead): FieldLines {
    const lines = responseLines(fields, connection, status, this);
    addGatewayFields(lines, this.context);
    return lines;
  }

  get isVaried(): boolean {
    return this.context.cors?.isVaried === true;
  }

  translate({ lower }: FieldName, value: string): string {
    return this.#upstream.addresses.translate(lower, value, this.exchange);
  }

  onData(chunk: Buffer): void {
    const isWhole = chunk.length === this.#head?.bodyLength;
    this.#cost?.onData(chunk, isWhole);
    if (isWhole && chunk.length <= MAX_JOINED_BYTES) this.#sendWhole(chunk.toString('latin1'));
    else this.exchange.write(chunk);
  }

  onWholeBody(text: string): void {
    this.#cost?.onData(Buffer.from(text, 'latin1'), true);
    this.#sendWhole(text);
  }

  /** As a string it shares one write with the head. */
  #sendWhole(text: string): void {
    this.exchange.endWith({ text, encoding: 'latin1' });
  }

  onFlush(): ChunkMemory {
    const { exchange } = this;
    if (this.#head === undefined || exchange.isClosed) return 'released';
    if (!exchange.isEnded) {
      // The body may be long in coming, and the chunks are only valid now.
      exchange.flush();
      if (exchange.needsDrain && exchange.unsentBytes > 0) this.#transfer?.pause();
    }
    // The operating system has a copy of what the response no longer counts.
    return exchange.unsentBytes === 0 ? 'released' : 'kept';
  }

  onEnd(trailers: FieldSection | undefined): void {
    this.#cost?.onEnd(trailers);
    this.leave();
    const { exchange } = this;
    if (exchange.isEnded) return;
    // Elsewhere than behind chunks, trailers may be dropped (RFC 9110 section 6.5.1).
    exchange.end(trailers && responseLines(trailers, undefined, exchange.status));
  }

  onError(error: Error, repeat: Repeat): void {
    if (!this.#isRepeated && !this.exchange.isClosed && isRepeatable(repeat, this.#request)) {
      this.detach();
      this.#isRepeated = true;
      this.#request = { ...this.#request, needsNewConnection: true };
      this.#dispatch(performance.now());
      return;
    }
    if (codeOf(error) === HEADERS_TIMEOUT) this.#noteLatency(performance.now());
    if (isUnsent(error, this.#transfer)) refund(this.context, this.#store);
    this.leave();
    this.#fail(error);
  }

  #fail(error: Error): void {
    const { context, exchange } = this;
    // Neither a body that its client broke off nor a client that has left is a failure of the upstream.
    if (!(error instanceof BodyError || exchange.isClosed)) {
      context.upstreamError = codeOf(error);
      if (error instanceof UpstreamError) context.upstreamErrorDetail = error.message;
    }
    if (exchange.hasBegun || exchange.isClosed) this.#cutShort();
    else respond(context, refusalOf(error), this.#baseUrl);
  }

  /** An incomplete body is how the client learns of the failure. Without the head, clients would send the request once more. */
  #cutShort(): void {
    const { exchange } = this;
    if (!exchange.isClosed) exchange.flush();
    exchange.abort();
  }

  onDrain(): void {
    this.#transfer?.resume();
  }

  onAbandoned(): void {
    if (this.#transfer !== undefined) this.#transfer.abort();
    else if (this.#isWaiting) this.#leaveQueue();
    else if (this.#upstream.pool.cancel(this.#request)) this.leave();
  }

  get visit(): Visit | undefined {
    return this.#visit;
  }

  /** Undefined as well once the upstream answers: both may be talking. */
  get awaitedBytes(): number | undefined {
    return this.#head === undefined ? this.exchange.awaitedBytes : undefined;
  }

  giveWay(): void {
    refund(this.context, this.#store);
    if (this.#visit !== undefined) this.#upstream.turns.leave(this.#visit);
    this.exchange.breakOff(UPLOAD_STALLED);
  }

  get #isWaiting(): boolean {
    return this.#visit?.state === 'waiting';
  }

  #leaveQueue(): void {
    if (this.#visit === undefined) return;
    this.context.queuedMs = performance.now() - this.#visit.sinceMs;
    this.#upstream.turns.leave(this.#visit);
  }

  /** A body may break while its request waits for a connection; later, the connection reports it. */
  #onBodyError(error: Error): void {
    if (this.#transfer !== undefined) return;
    if (this.#isWaiting) {
      this.#leaveQueue();
      this.#fail(error);
    } else if (this.#upstream.pool.cancel(this.#request)) this.onError(error, 'none');
  }
}

/** The refusal of a request that would get no turn: too many wait, or its share of the upstream's connections is used. */
export function crowdedOut({ turns }: Upstream, request: PortRequest): Refusal | undefined {
  const traffic = trafficOf(request);
  if (!turns.hasRoomFor(traffic, payerIdOf(request))) return UPSTREAM_BUSY;
  return request.source.isTunnel && !turns.hasRoomForTunnel(traffic) ? TUNNELS_BUSY : undefined;
}

/** Whose share of the upstream's connections a request uses. */
export function trafficOf({ caller, publicClient }: PortRequest): Traffic {
  if (caller !== undefined) return 'caller';
  return publicClient === undefined ? 'uncharged' : 'public';
}

/** Whose turn it takes: an Account's, or a client's address. */
export function payerIdOf(request: PortRequest): string {
  return request.caller?.account ?? request.clientNetwork;
}
