import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Refusal } from '../domain/problems.ts';
import type { Peer } from './message/fields/forwarded.ts';
import type { FieldLines } from './message/head/field-lines.ts';
import { hasBody, type RequestHead } from './message/head/field-section.ts';
import { valuesUnderAnySpelling } from './message/headers.ts';

/** What may read a request from its connection: the edge reads the plain ones. */
export const READERS = ['edge', 'node'] as const;

/** The rest of a request's body is read to its end up to this size, so that the connection can be reused. */
const SMALL_BODY_BYTES = 65_536;

/** A complete body of a response. */
export interface WholeBody {
  readonly text: string;
  readonly encoding: 'latin1' | 'utf8';
}

/** Relays a response, and follows what becomes of its client. */
export interface Taker {
  /** The client has read what was waiting for it. */
  onDrain(): void;
  /** The client left before it had the whole response. */
  onAbandoned(): void;
}

/**
 * One request as it was read, and its response. It has two sources: the edge makes it from the bytes of a connection, and the rest comes
 * from the messages of Node's server.
 */
export abstract class Exchange {
  readonly head: RequestHead;
  readonly peer: Peer;
  /** The whole body, once it has been read; otherwise it is streamed. */
  body: Buffer | undefined;
  /** The same in pieces, if it was read for the upstream alone. */
  pieces: readonly Buffer[] | undefined = undefined;
  /** Status of the response; 0 until it begins. */
  status = 0;
  /** Relays the response of the upstream; undefined for one of the gateway's own. */
  taker: Taker | undefined = undefined;
  /** Called once, when the response has been sent or the client has left. */
  onClosed: (() => void) | undefined = undefined;

  constructor(head: RequestHead, peer: Peer, body: Buffer | undefined) {
    this.head = head;
    this.peer = peer;
    this.body = body;
  }

  /** The value of a field, whose name is in lower case. */
  field(name: string): string | undefined {
    return this.head.field(name);
  }

  /** The values of a field under any of its spellings. */
  valuesOf(name: string): readonly string[] {
    return valuesUnderAnySpelling(this.head.fields, name);
  }

  get hasBody(): boolean {
    return hasBody(this.head);
  }

  abstract readonly reader: (typeof READERS)[number];
  /** Why the rest of the request will not arrive; undefined if it is complete or still arriving. */
  abstract readonly brokenBy: Refusal | undefined;
  /** Whether the whole request has arrived. */
  abstract readonly isComplete: boolean;
  /** Whether it asks for a tunnel: a WebSocket handshake. */
  abstract readonly isTunnel: boolean;
  /** Whether its connection has more than its share: it is refused. */
  abstract readonly isSurplus: boolean;

  /**
   * Reads the body, and sends a 100 first if the client waits for it.
   *
   * @returns its one stream, which fails with a BodyError
   */
  abstract readBody(maxBytes: number): Readable;
  /** Reads the rest of the body, and drops it. */
  abstract dropBody(): void;
  /** How much the client has sent on its connection; undefined unless the rest of the body is being read. */
  abstract readonly awaitedBytes: number | undefined;
  /** Reads no more of the body, whose stream fails with this refusal. */
  abstract breakOff(refusal: Refusal): void;

  /** Whether the head of the response has been written, at least to memory. */
  abstract readonly hasBegun: boolean;
  /** Whether nothing can be added to the response, sent or not. */
  abstract readonly isEnded: boolean;
  /** Whether the system has taken the whole response. */
  abstract readonly isAnswered: boolean;
  /** Whether the response has been sent or the connection is gone. */
  abstract readonly isClosed: boolean;
  /** Whether the client is no longer waiting for the response: it disconnected, or its connection is closing. */
  abstract readonly isAbandoned: boolean;
  /** Bytes of the response that wait in this process. */
  abstract readonly unsentBytes: number;
  abstract readonly needsDrain: boolean;

  /** The connection closes behind this response. */
  abstract endKeepAlive(): void;
  /** Closes the connection once the response has arrived, and reads nothing more of it; for a response with `Connection: close`. */
  abstract closeBehind(): void;

  /**
   * Begins the response.
   *
   * @throws TypeError if a field could break its line
   */
  abstract begin(status: number, lines: FieldLines): void;
  abstract write(chunk: Buffer): void;
  /** Ends the response with a whole body, in one write with its head. */
  abstract endWith(body: WholeBody): void;
  /** Like `endWith`, at the end of this turn of the event loop. */
  abstract endThisTurn(body: WholeBody): void;
  /** Hands to the system what has been written. */
  abstract flush(): void;
  /** @param trailers dropped where the response is not chunked */
  abstract end(trailers?: FieldLines): void;
  /** Sends an interim response, if the client can take one. */
  abstract sendInterim(status: number, lines: FieldLines): void;
  /**
   * Sends a 101 with these fields.
   *
   * @param behind the upstream's side of the tunnel
   * @returns the client's side
   */
  abstract switchProtocols(lines: FieldLines, behind: Socket): Socket;
  /** Closes the connection. */
  abstract abort(): void;

  /**
   * Sends a whole response of the gateway's own. If the rest of an upload is short, it is read and dropped; otherwise the connection
   * closes once the response has arrived.
   */
  answer(status: number, lines: FieldLines, body: WholeBody): void {
    if (this.isAbandoned) {
      this.abort();
      return;
    }
    if (this.isUploadUnfinished) this.makeLast();
    this.dropBody();
    this.begin(status, lines);
    this.endThisTurn(body);
  }

  /** Whether the rest of a refused upload is too long, or of unknown length, so it is not read. */
  get isUploadUnfinished(): boolean {
    if (this.isComplete || !this.hasBody) return false;
    if (this.field('expect') !== undefined) return true;
    const length = this.field('content-length');
    return length === undefined || Number(length) > SMALL_BODY_BYTES;
  }

  /** Makes this response, which has not begun, the last of its connection. */
  makeLast(): void {
    this.endKeepAlive();
    this.closeBehind();
  }
}
