import { connect } from 'node:net';

const KINDS = ['slow', 'slow', 'slow', 'slow', 'stream', 'upload', 'socket', 'break', 'hang'] as const;

/** How long a client waits for anything: more than the time-outs of the gateway. */
const PATIENCE_MS = 15_000;

/** How one request ended: its status, `none` without an answer, or `left` if the client was the one to end it. */
export type Outcome = string;

/**
 * Sends one request of a random kind on a connection of its own, and in one of four leaves at a random moment.
 *
 * @param ms the longest time that the upstream takes
 */
export function sendRandom(url: string, token: string, ms: number): Promise<Outcome> {
  const kind = KINDS[Math.floor(Math.random() * KINDS.length)] ?? 'slow';
  const leavesAfterMs = Math.random() < 0.25 ? Math.random() * ms : undefined;
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.setTimeout(PATIENCE_MS, () => socket.resetAndDestroy());
  let outcome: Outcome = 'none';
  socket.on('data', (chunk: Buffer) => {
    if (outcome === 'none') outcome = chunk.toString('latin1', 9, 12);
    // A tunnel has no end of its own, and the other answers close the connection.
  });
  socket.on('connect', () => {
    socket.write(requestOf(kind, token, Math.ceil(Math.random() * ms)));
    if (kind === 'upload')
      setTimeout(() => socket.writable && socket.write('1\r\nb\r\n0\r\n\r\n'), Math.random() * ms);
  });
  if (leavesAfterMs !== undefined) {
    setTimeout(() => {
      if (!socket.destroyed) outcome = 'left';
      socket.resetAndDestroy();
    }, leavesAfterMs);
  }
  return new Promise((resolve) => {
    socket.on('error', () => {});
    socket.on('end', () => socket.destroy());
    socket.on('close', () => resolve(outcome));
  });
}

function requestOf(kind: (typeof KINDS)[number], token: string, ms: number): string {
  const path = kind === 'upload' || kind === 'socket' ? 'slow' : kind;
  const fields = [`Authorization: Bearer ${token}`];
  if (kind === 'socket')
    fields.push('Host: weir', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13');
  else fields.push('Host: weir', 'Connection: close');
  if (kind === 'upload') fields.push('Transfer-Encoding: chunked');
  const head = `${kind === 'upload' ? 'POST' : 'GET'} /${path}?ms=${ms} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`;
  return kind === 'upload' ? `${head}1\r\na\r\n` : head;
}
