import type { ServerResponse } from 'node:http';

interface Body {
  readonly text: string;
  readonly encoding: 'latin1' | 'utf8';
}

/** Responses that are sent at the end of this turn of the event loop. */
const waiting = new Map<ServerResponse, Body>();

/**
 * Ends a response with a complete body. It is sent once this turn of the event loop has read every socket, right after the other
 * responses of the turn: a client or proxy with several connections is then woken once for all of them, and waking it costs the
 * system more than the write.
 */
export function endWith(response: ServerResponse, text: string, encoding: Body['encoding']): void {
  if (waiting.size === 0) setImmediate(sendAll);
  waiting.set(response, { text, encoding });
}

/** Whether nothing can be added to the response, sent or not. */
export function isEnded(response: ServerResponse): boolean {
  return response.writableEnded || waiting.has(response);
}

function sendAll(): void {
  const responses = [...waiting];
  waiting.clear();
  for (const [response, body] of responses) if (!response.destroyed) send(response, body);
}

/** Header and body in one string and one write. Node's own `end(body)` adds an empty third piece and uses a slower vectored write. */
function send(response: ServerResponse, { text, encoding }: Body): void {
  response.write(text, encoding);
  response.socket?.uncork();
  response.end();
}
