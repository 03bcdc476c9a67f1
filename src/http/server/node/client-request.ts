import { type IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FieldValues } from '../../../domain/field-name.ts';
import type { Refusal } from '../../../domain/problems.ts';
import { hasBody } from '../../message/head/field-section.ts';
import type { NodeTurn } from './node-turn.ts';

/** A request as Node's server reads it. */
export class ClientRequest extends IncomingMessage {
  /** Undefined until the head has been read. */
  turn: NodeTurn | undefined;
  #brokenBy: Refusal | undefined;
  declare isUpgradeAsked: boolean;

  /** Why the rest of this request will not arrive; undefined if it is complete or still arriving. */
  get brokenBy(): Refusal | undefined {
    return this.#brokenBy;
  }

  /** Records why the rest will not arrive, and emits `broken` for the reader of the body. */
  breakOff(refusal: Refusal): void {
    if (this.#brokenBy !== undefined) return;
    this.#brokenBy = refusal;
    this.emit('broken');
  }

  /**
   * Whether Node's server is to leave the connection to the listener of `upgrade` or `connect`: to a WebSocket request, which is a GET
   * that passes every stage, and to CONNECT, which the first stage refuses. Other upgrades are ignored (RFC 9110 section 7.8).
   */
  get upgrade(): boolean {
    return this.isUpgradeAsked && (this.method === 'CONNECT' || this.isWebSocket);
  }

  /** Set by Node's server, at first by the constructor of IncomingMessage. */
  set upgrade(isAsked: boolean | null) {
    this.isUpgradeAsked = isAsked === true;
  }

  /** HTTP/1.0 has no upgrade (RFC 9110 section 7.8). */
  get isWebSocket(): boolean {
    const { method, headers, httpVersion } = this;
    const isNamed = headers.upgrade?.toLowerCase() === 'websocket' && httpVersion === '1.1';
    return method === 'GET' && isNamed && !this.hasBody;
  }

  /** Whether a body follows the head. */
  get hasBody(): boolean {
    const values = fieldValuesOf(this.headers);
    return hasBody({ field: (name) => values[name] });
  }
}

/** Node's server keeps several values of one name apart for Set-Cookie only, which no request should have. */
export function fieldValuesOf(headers: IncomingHttpHeaders): FieldValues {
  const cookies = headers['set-cookie'];
  return (cookies === undefined ? headers : { ...headers, 'set-cookie': cookies.join(', ') }) as FieldValues;
}
