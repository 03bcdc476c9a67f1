import type { Exchange, WholeBody } from '../exchange.ts';

/** Responses that are sent at the end of this turn of the event loop. */
let waiting: { readonly exchange: Exchange; readonly body: WholeBody }[] = [];

/**
 * Ends a response that the gateway made itself, once this turn of the event loop has read every socket, right after the others of
 * the turn: a client or proxy with several connections is then woken once for all of them, which costs the system less. Forwarded
 * responses gain nothing by waiting.
 */
export function endThisTurn(exchange: Exchange, body: WholeBody): void {
  if (waiting.length === 0) setImmediate(endAll);
  waiting.push({ exchange, body });
}

function endAll(): void {
  const responses = waiting;
  waiting = [];
  for (const { exchange, body } of responses) if (!exchange.isClosed) exchange.endWith(body);
}
