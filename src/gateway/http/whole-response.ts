import type { ServerResponse } from 'node:http';
import { EdgeResponse } from '../edge/response.ts';

/** A complete body. */
export interface Body {
  readonly text: string;
  readonly encoding: 'latin1' | 'utf8';
}

/** Responses that are sent at the end of this turn of the event loop. */
let waiting = new Map<ServerResponse, Body>();

/**
 * Ends a response that the gateway made itself, once this turn of the event loop has read every socket, right after the others of
 * the turn: a client or proxy with several connections is then woken once for all of them, which costs the system less. Forwarded
 * responses gain nothing by waiting.
 */
export function endThisTurn(response: ServerResponse, body: Body): void {
  if (waiting.size === 0) setImmediate(endAll);
  waiting.set(response, body);
}

/** Whether nothing can be added to the response, sent or not. */
export function isEnded(response: ServerResponse): boolean {
  return response.writableEnded || waiting.has(response);
}

function endAll(): void {
  const responses = waiting;
  // Not `clear`: V8 then links the old table, with its entries, to the new one, which keeps them until the next full collection.
  waiting = new Map();
  for (const [response, body] of responses) if (!response.destroyed) endWith(response, body);
}

/**
 * Ends a response with a complete body: header and body in one string and one write. Node's own `end(body)` adds an empty
 * third piece and uses a slower vectored write.
 */
export function endWith(response: ServerResponse | EdgeResponse, body: Body): void {
  if (response instanceof EdgeResponse && response.endWhole(body)) return;
  const { text, encoding } = body;
  response.write(text, encoding);
  response.socket?.uncork();
  response.end();
}
