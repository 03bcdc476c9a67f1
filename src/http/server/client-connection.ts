import type { Socket } from 'node:net';
import type { Refusal } from '../../domain/problems.ts';
import { Peer } from '../message/fields/forwarded.ts';
import { SendTimeout, type StallLimits, Standstill } from './stalls.ts';
import { TOO_SLOW } from './unreadable.ts';

/** The request that a connection serves, and its response. A connection serves one at a time. */
export interface Turn {
  /** Whether the whole request has arrived. */
  readonly isComplete: boolean;
  /** Whether it asks for a tunnel. */
  readonly isTunnel: boolean;
  /** Whether it has become a tunnel, whose sides may end one after the other. */
  readonly hasSwitched: boolean;
  /** Whether the rest of its body is being read. */
  readonly isAwaited: boolean;
  /** Whether the response has been sent; the rest of the body may still arrive. */
  readonly isAnswered: boolean;
  /** Whether the head of the response has been written. */
  readonly hasBegun: boolean;
  /** Whether nothing can be added to the response. */
  readonly isEnded: boolean;
  /** The rest of the request will not arrive. */
  breakOff(refusal: Refusal): void;
  /** Makes the response, which may have begun, the last of its connection. */
  makeLast(): void;
  abort(): void;
}

/** Reads the requests of a connection: the edge, or the feed of Node's parser. */
export interface Reader {
  /** Whether it waits for a further request. */
  readonly isIdle: boolean;
  /** Whether it waits for the first request. */
  readonly isUnused: boolean;
  /** Called about once a second. */
  check(nowMs: number): void;
}

/** Long enough for a response to arrive; short enough that a client that keeps sending costs little. */
const LINGER_MS = 1_000;

/** TCP keep-alive interval for silent, half-closed clients. */
const PROBE_MS = 1_000;

/** One client's connection, plain or with TLS: what it serves, whether it closes, and what is waited for. */
export class ClientConnection {
  readonly socket: Socket;
  readonly peer: Peer;
  readonly openedMs: number;
  /** Whether it is above the port's limit: its requests are refused. */
  readonly isSurplus: boolean;
  /** Whether it already has its last response; later requests on it are not executed. */
  isClosing = false;
  reader: Reader | undefined;
  /** Undefined between requests, and while a head arrives. */
  turn: Turn | undefined;
  #isReadingAhead = false;
  readonly #limits: StallLimits;
  readonly #sent: SendTimeout;
  /** Of the upstream's side of a tunnel. */
  #sentBehind: SendTimeout | undefined;
  readonly #received = new Standstill();

  constructor(socket: Socket, limits: StallLimits, isSurplus: boolean, openedMs: number) {
    this.socket = socket;
    this.peer = new Peer(socket);
    this.isSurplus = isSurplus;
    this.openedMs = openedMs;
    this.#limits = limits;
    this.#sent = new SendTimeout(socket);
    // Node closes the socket after an error, which ends the response.
    socket.on('error', () => {});
  }

  /** Whether a response is to come, or is on its way. */
  get isAnswering(): boolean {
    return this.turn !== undefined && !this.turn.isAnswered;
  }

  /** Whether the bytes that are read in this turn of the event loop arrived before the last response was sent. */
  get isReadingAhead(): boolean {
    return this.#isReadingAhead;
  }

  /**
   * Says that the bytes that are read in this turn arrived before the last response was sent. If they are broken, they end the
   * connection without another response, as they would have if they had been read on arrival.
   */
  readAhead(): void {
    this.#isReadingAhead = true;
    setImmediate(() => {
      this.#isReadingAhead = false;
    });
  }

  /** The connection has its last response, or gets it next. */
  beginClosing(): void {
    this.isClosing = true;
  }

  /** Closes a connection that already has its last response. */
  closeNow(): void {
    this.isClosing = true;
    this.linger();
  }

  /** Writes a last response to a connection whose parser has failed, and closes it. */
  closeWith(answer: string): void {
    this.socket.write(answer, 'latin1');
    this.closeNow();
  }

  /**
   * Ends the writing side now, and the connection once the client ends its side or a second has passed. Closing a socket with unread
   * bytes resets it, and the reset can overtake the response: what arrives until then is read and dropped.
   */
  readonly linger = (): void => {
    const { socket } = this;
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('end', () => socket.destroy());
    socket.once('close', () => clearTimeout(timer));
    socket.resume();
    socket.end(() => {
      if (socket.readableEnded) socket.destroy();
    });
  };

  /** Listens for the client's end, behind the reader that listens for it already. */
  followClientEnd(): void {
    this.socket.off('end', this.#onClientEnd).on('end', this.#onClientEnd);
  }

  /**
   * The client closed its sending side. Nothing else shows that a waiting client has gone, so its request is aborted. With `serve`, it
   * still gets a response that has not begun (RFC 9112 section 9.6). An incomplete request gets its 400. A side of a tunnel may end alone.
   */
  readonly #onClientEnd = (): void => {
    const { turn } = this;
    if (turn === undefined || turn.isAnswered) return;
    const mayWait = this.#limits.halfClose === 'serve' || !turn.isComplete || turn.hasSwitched;
    const isServed = turn.isEnded || (mayWait && !turn.hasBegun);
    if (!isServed) turn.abort();
    else this.socket.setKeepAlive(true, PROBE_MS);
  };

  /** The connection is joined to one of the upstream, whose side is watched as well. */
  joinTo(behind: Socket): void {
    this.#sentBehind = new SendTimeout(behind);
  }

  /** Closes the connection if its other side makes no progress. */
  check(nowMs: number): void {
    const { sendTimeoutMs, bodyTimeoutMs } = this.#limits;
    this.#sent.check(sendTimeoutMs, nowMs);
    this.#sentBehind?.check(sendTimeoutMs, nowMs);
    const { turn } = this;
    const received = turn?.isAwaited === true ? this.socket.bytesRead : undefined;
    if (this.#received.lengthMs(received, nowMs) >= bodyTimeoutMs) turn?.breakOff(TOO_SLOW);
    this.reader?.check(nowMs);
  }
}
