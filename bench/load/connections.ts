import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { AnswerReader, requestOf } from './answer.ts';

/** How many are opened at once: a listener's backlog is no part of what is measured. */
const AT_ONCE = 100;

/** An answer that takes longer is not coming: the listener has no room for this connection. */
const ANSWER_MS = 10_000;

/** Connections that each had one answer and now stand idle. */
export interface IdleConnections {
  readonly count: number;
  close(): void;
}

export async function openConnections(port: number, count: number, path: string): Promise<IdleConnections> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const opening = Array.from({ length: Math.min(AT_ONCE, count - sockets.length) }, () =>
      openOne(port, path),
    );
    sockets.push(...(await Promise.all(opening)));
  }
  return {
    count,
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function openOne(port: number, path: string): Promise<Socket> {
  const socket = createConnection(port, '127.0.0.1').setEncoding('latin1');
  await once(socket, 'connect');
  const reader = new AnswerReader();
  const answered = new Promise<void>((resolve, reject) => {
    socket.on('data', (chunk) => {
      if (reader.push(String(chunk)) !== 0) resolve();
    });
    socket.once('close', () => reject(new Error('a connection was closed before its answer')));
    socket.setTimeout(ANSWER_MS, () => socket.destroy());
  });
  socket.on('error', () => undefined);
  socket.write(requestOf(1, path));
  await answered;
  socket.setTimeout(0);
  return socket;
}
