import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import {
  BODY_TIMEOUT,
  CONNECT_TIMEOUT,
  HEADERS_TIMEOUT,
  UNSENDABLE,
  UpstreamError,
} from '../message/errors.ts';
import { isFieldValue, isRequestTarget, isToken } from '../message/grammar.ts';
import type { FieldLines } from '../message/head/field-lines.ts';
import type { ResponseHead } from '../message/head/response-head.ts';
import type { ResponseReceiver } from './response-reader.ts';

/** One request for an upstream, and who takes its response. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** The Host field that replaces the upstream's own. */
  readonly host?: string | undefined;
  /** Without Host and without those that frame the message. */
  readonly lines: FieldLines;
  /** Whole, whole in pieces, or as it arrives. */
  readonly body: Buffer | readonly Buffer[] | Readable | null;
  /** Length of a body that is a stream; undefined sends it chunked. */
  readonly bodyLength?: number | undefined;
  /** Never sent on a connection that has carried another request. */
  readonly needsNewConnection?: boolean;
  /** A request to switch protocols; it has no body. */
  readonly upgrade?: UpgradeRequest | undefined;
  readonly handler: ResponseHandler;
  /** Where it waits for a connection. The pool's own. */
  place?: WaitingPlace | undefined;
}

/** A place among the requests that wait for a connection. */
export interface WaitingPlace {
  readonly request: UpstreamRequest;
  /** The request's head as it is sent. */
  readonly head: string;
  /** Whether the request was sent or cancelled. */
  isEmpty: boolean;
}

interface UpgradeRequest {
  /** In lower case. */
  readonly protocol: string;
  /**
   * Called instead of the other callbacks once the upstream has switched. The callee owns the socket, which keeps its place in the pool
   * until it closes.
   */
  onUpgrade(head: ResponseHead, socket: Socket): void;
}

/**
 * The memory of the chunks that a handler was given. `released`: the next read overwrites it. `kept`: it is the handler's, for as long as
 * something refers to it, and the connection reads into other memory.
 */
export type ChunkMemory = 'released' | 'kept';

/**
 * Whether a request whose connection broke may be sent again, on a new one. `any`: nothing of it was sent. `idempotent`: the connection had
 * been used before and broke without a byte of the response, so the upstream may or may not have seen the request.
 */
export type Repeat = 'any' | 'idempotent' | 'none';

/** Takes one response. Exactly one of `onEnd` and `onError` is called, and nothing after it but `onFlush`. */
export interface ResponseHandler extends ResponseReceiver {
  /** The request is about to be sent; until then it can be cancelled at the pool only. */
  onConnection(transfer: Transfer): void;
  /**
   * Called when a read has been handed over: what can be passed on should be passed on now.
   *
   * @returns who owns the memory of the chunks from now on
   */
  onFlush(): ChunkMemory;
  /** @param repeat with `any`, the body can be sent from its beginning */
  onError(error: Error, repeat: Repeat): void;
}

/** A request that has a connection. */
export interface Transfer {
  /** Whether the connection was established, its TLS handshake included. Before that, nothing of the request is sent. */
  readonly isConnected: boolean;
  /** Stops reading the response; some chunks may still follow. */
  pause(): void;
  resume(): void;
  /** Closes the connection; `onError` follows at once. */
  abort(): void;
}

/** Methods whose requests state a length even when they have no body (RFC 9110 section 8.6). */
const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'QUERY']);

/**
 * The head of a request as it is sent.
 *
 * @throws UpstreamError when a name, a value or the target could break the framing
 */
export function writeRequestHead(request: UpstreamRequest, upstreamHost: string): string {
  const { method, target, lines, host = upstreamHost } = request;
  if (!isToken(method)) throw unsendable('the method');
  if (!isRequestTarget(target)) throw unsendable('the target');
  if (!isFieldValue(host)) throw unsendable('the host');
  if (!lines.isSafe || lines.hasClients) throw unsendable('a field');
  return `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n${lines.text}${framingField(request)}\r\n`;
}

function framingField({ method, body, bodyLength, upgrade }: UpstreamRequest): string {
  if (upgrade !== undefined) return `Connection: Upgrade\r\nUpgrade: ${upgrade.protocol}\r\n`;
  if (body === null) return METHODS_WITH_BODY.has(method) ? 'Content-Length: 0\r\n' : '';
  const length = lengthOf(body) ?? bodyLength;
  return length === undefined ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${length}\r\n`;
}

/** Of a body that is whole. */
function lengthOf(body: UpstreamRequest['body']): number | undefined {
  if (Buffer.isBuffer(body)) return body.length;
  return Array.isArray(body) ? body.reduce((sum, piece) => sum + piece.length, 0) : undefined;
}

function unsendable(part: string): UpstreamError {
  return new UpstreamError(UNSENDABLE, `${part} cannot be written as HTTP/1.1`);
}

/** How long an upstream may take; 0 for no limit. */
export interface TimeLimits {
  readonly connectTimeoutMs: number;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
}

/** An upstream counts its own limit from an earlier moment than this side does. */
const KEEP_ALIVE_MARGIN_MS = 1_000;

/** How long a connection may be idle whose upstream closes it after `statedMs`. */
export function idleLimitOf(statedMs: number, { keepAliveTimeoutMs }: TimeLimits): number {
  return Math.min(keepAliveTimeoutMs, statedMs - KEEP_ALIVE_MARGIN_MS);
}

/**
 * The error of a wait that has exceeded its limit; undefined for one that has not.
 *
 * @param wait what a request waits for. A slow client has limits of its own
 */
export function timeoutOf(
  wait: 'connection' | 'client' | 'head' | 'body',
  waitedMs: number,
  limits: TimeLimits,
): UpstreamError | undefined {
  switch (wait) {
    case 'connection':
      return exceeded(waitedMs, limits.connectTimeoutMs, CONNECT_TIMEOUT, 'no connection in time');
    case 'head':
      return exceeded(waitedMs, limits.headersTimeoutMs, HEADERS_TIMEOUT, 'no response header in time');
    case 'body':
      return exceeded(waitedMs, limits.bodyTimeoutMs, BODY_TIMEOUT, 'a silence within the response body');
    case 'client':
      return undefined;
  }
}

function exceeded(
  waitedMs: number,
  limitMs: number,
  code: string,
  message: string,
): UpstreamError | undefined {
  return limitMs > 0 && waitedMs >= limitMs ? new UpstreamError(code, message) : undefined;
}
