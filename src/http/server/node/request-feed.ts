/**
 * Passes what clients send to Node's parser, one request of a connection at a time (RFC 9112 section 9.3.2). What follows a request
 * stays unread in its socket until the request has been answered, so a connection costs at most what its unread bytes cost.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Refusal } from '../../../domain/problems.ts';
import { countBuffer } from '../../message/buffer-garbage.ts';
import { tooManyFields } from '../../message/fields/inspect.ts';
import type { HeadLimits } from '../../message/head/read-fields.ts';
import type { ClientConnection, Reader } from '../client-connection.ts';
import { breakTurn, NOT_HTTP } from '../unreadable.ts';
import { type BodyEnd, bodyEndOf } from './body-end.ts';
import { ClientRequest } from './client-request.ts';
import { HeadScanner } from './head-scanner.ts';
import { onLastResponseSent } from './internals.ts';
import { NodeTurn } from './node-turn.ts';

/** Serves a request of Node's server. */
export type Serve = (request: ClientRequest, response: ServerResponse) => void;

interface FeedLimits extends HeadLimits {
  readonly keepAliveTimeoutMs: number;
}

/** The feeds of a server's parsers. */
export class ParserFeeds {
  readonly #serve: Serve;
  /** The feed whose bytes are being parsed, which happens within one call. */
  #parsing: RequestFeed | undefined;

  constructor(server: Server, serve: Serve) {
    this.#serve = serve;
    // The 100 is sent once the upstream accepts the body, so a refused request gets its final status at once.
    for (const name of ['request', 'checkContinue', 'checkExpectation']) {
      server.on(name, (request, response) => this.#take(request, response));
    }
    // Node ignores upgrades that nobody listens for.
    server.once('listening', () => {
      for (const name of ['upgrade', 'connect']) {
        if (server.listenerCount(name) > 0)
          server.prependListener(name, (request) => this.#parsing?.detach(request));
      }
    });
    server.prependListener('clientError', () => this.#parsing?.fail());
  }

  /** Has a connection read by the parser that Node's server has just given it. */
  feed(connection: ClientConnection, limits: FeedLimits): Reader {
    const { socket } = connection;
    const [parse, ...others] = socket.listeners('data') as ((bytes: Buffer) => void)[];
    if (parse === undefined || others.length > 0) throw new TypeError('the socket has not one reader');
    socket.off('data', parse);
    const feed = new RequestFeed(connection, limits, (bytes) => {
      this.#parsing = feed;
      try {
        parse(bytes);
      } finally {
        this.#parsing = undefined;
      }
    });
    return feed;
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    if (!(request instanceof ClientRequest)) throw new TypeError('the request is not of this server');
    if (this.#parsing === undefined) request.socket.destroy();
    else this.#parsing.begin(request, response, this.#serve);
  }
}

/** What one connection sends, on its way to the parser. */
class RequestFeed implements Reader {
  readonly #connection: ClientConnection;
  readonly #socket: Socket;
  readonly #limits: FeedLimits;
  readonly #parse: (bytes: Buffer) => void;
  #head: HeadScanner;
  /** Undefined between requests, and while a head arrives. */
  #turn: NodeTurn | undefined;
  /** The rest of the body; undefined if all of it has been parsed. */
  #body: BodyEnd | undefined;
  #state: 'reading' | 'failed' | 'detached' = 'reading';
  /** What follows the bytes that are being parsed. */
  #rest: Buffer = NOTHING;
  /** The next bytes arrived before the last response was sent. */
  #hasReadAhead = false;
  /** Undefined before the first request, which Node's server times. */
  #idleSinceMs: number | undefined;

  constructor(connection: ClientConnection, limits: FeedLimits, parse: (bytes: Buffer) => void) {
    this.#connection = connection;
    this.#socket = connection.socket;
    this.#limits = limits;
    this.#parse = parse;
    this.#head = new HeadScanner(limits.maxHeaderFields);
    this.#socket.on('data', this.#onData);
    const closeAtOnce = this.#socket.destroySoon.bind(this.#socket);
    onLastResponseSent(this.#socket, () => {
      // What is left of a body still arrives, or another request has.
      if (this.#hasReadAhead || this.#turn?.isComplete === false) connection.closeNow();
      else closeAtOnce();
    });
  }

  /** Whether nothing has arrived since the last response. */
  get isIdle(): boolean {
    return this.#isWaiting && this.#idleSinceMs !== undefined;
  }

  get isUnused(): boolean {
    return this.#isWaiting && this.#idleSinceMs === undefined;
  }

  /** Empty lines are no request. */
  get #isWaiting(): boolean {
    return this.#turn === undefined && !this.#head.hasBegun;
  }

  check(nowMs: number): void {
    if (this.#state === 'detached' || !this.isIdle) return;
    if (nowMs - (this.#idleSinceMs ?? nowMs) >= this.#limits.keepAliveTimeoutMs) this.#socket.destroy();
  }

  /** A request has been parsed. It is not served if another one has not been answered. */
  begin(request: ClientRequest, response: ServerResponse, serve: Serve): void {
    if (this.#turn !== undefined) {
      // The last response may still be on its way.
      if (!this.#connection.isClosing) this.#socket.destroy();
      return;
    }
    this.#turn = new NodeTurn(this.#connection, request, response);
    this.#body = bodyEndOf(request, this.#limits);
    this.#breakOverfull(request);
    if (this.#head.namesAnotherProtocol) request.breakOff(NOT_HTTP);
    response.once('finish', () => this.#endRequest());
    serve(request, response);
  }

  /** The parser could not read what it was given. */
  fail(): void {
    this.#state = 'failed';
  }

  /** Leaves the socket, with what has not been parsed, to somebody else. */
  detach(request: IncomingMessage): void {
    this.#state = 'detached';
    if (request instanceof ClientRequest) this.#breakOverfull(request);
    this.#socket.off('data', this.#onData);
    if (this.#rest.length > 0) this.#socket.unshift(this.#rest);
  }

  readonly #onData = (bytes: Buffer): void => {
    let rest = bytes;
    if (this.#hasReadAhead) this.#connection.readAhead();
    this.#hasReadAhead = false;
    while (this.#isReading && this.#turn === undefined && rest.length > 0) rest = this.#readHead(rest);
    if (this.#body !== undefined && this.#isBodyRead) rest = this.#readBody(this.#body, rest);
    if (rest.length === 0 || this.#state === 'detached') return;
    if (this.#isReading) this.#holdBack(rest);
    else countBuffer(rest);
  };

  get #isReading(): boolean {
    return this.#isOpen && !this.#connection.isClosing;
  }

  /** A response may begin before the body has ended, and the connection close behind it: both flow on until then. */
  get #isBodyRead(): boolean {
    return this.#isOpen && !(this.#turn?.isAnswered === true && this.#connection.isClosing);
  }

  /** Node frees the parser of a connection that it destroys, such as at a CONNECT that nobody listens for. */
  get #isOpen(): boolean {
    return this.#state === 'reading' && !this.#socket.destroyed;
  }

  #readHead(bytes: Buffer): Buffer {
    const head = bytes.subarray(this.#head.emptyLinesIn(bytes));
    if (this.#head.isFlooded) {
      this.fail();
      this.#socket.destroy();
      return NOTHING;
    }
    if (head.length === 0) return head;
    const end = this.#head.read(head) ?? head.length;
    const read = head.subarray(0, end);
    if (!this.#head.isOverfull) return this.#pass([read], head.subarray(end));
    // The request has one field more than it may have, and is refused: nothing behind it is read.
    this.#pass([read, LINE_END], NOTHING);
    if (this.#isOpen) this.fail();
    return NOTHING;
  }

  /** Refuses a request after only its first fields have been parsed. */
  #breakOverfull(request: ClientRequest): void {
    if (this.#head.isOverfull) request.breakOff(tooManyFields(this.#limits.maxHeaderFields));
  }

  #readBody(body: BodyEnd, bytes: Buffer): Buffer {
    const { pieces, end } = body.read(bytes);
    const rest = this.#pass(pieces, bytes.subarray(end));
    if (body.brokenBy !== undefined) {
      this.#breakOff(body.brokenBy);
      return NOTHING;
    }
    if (this.#turn?.isComplete === true) this.#body = undefined;
    // The parser sees another end than we do: nothing that follows can be trusted.
    else if (body.isDone && this.#isReading) this.#socket.destroy();
    this.#endRequest();
    return rest;
  }

  /** Refuses a body that breaks the grammar, unless the parser has refused it. */
  #breakOff(refusal: Refusal): void {
    if (!this.#isOpen) return;
    this.fail();
    if (this.#turn !== undefined) breakTurn(this.#connection, this.#turn, refusal);
  }

  /** Has pieces parsed. @returns what follows them */
  #pass(pieces: readonly Buffer[], rest: Buffer): Buffer {
    this.#rest = rest;
    for (const piece of pieces) if (piece.length > 0 && this.#isOpen) this.#parse(piece);
    this.#rest = NOTHING;
    return rest;
  }

  /** Leaves the next request in the socket until its turn. */
  #holdBack(bytes: Buffer): void {
    this.#socket.pause();
    this.#socket.unshift(bytes);
    if (this.#turn === undefined) this.#readOn();
    else this.#hasReadAhead = true;
  }

  #endRequest(): void {
    if (this.#turn?.isAnswered !== true || this.#body !== undefined) return;
    this.#turn = undefined;
    this.#connection.turn = undefined;
    this.#head = new HeadScanner(this.#limits.maxHeaderFields);
    this.#idleSinceMs = performance.now();
    if (this.#hasReadAhead) this.#readOn();
  }

  /** In the next turn of the event loop, so that other connections get theirs. */
  #readOn(): void {
    setImmediate(() => this.#socket.resume());
  }
}

const NOTHING = Buffer.alloc(0);
const LINE_END = Buffer.from('\r\n');
