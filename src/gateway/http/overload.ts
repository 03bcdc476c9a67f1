/** What the gateway does when there is too much of everything: 503 at once, uncharged, and never a 429. */
import type { Socket } from 'node:net';
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../problems.ts';

/** Connections above the limit that are still told so; past these, they are closed without a word. */
const TOLD_CONNECTIONS = 256;

const TOO_BUSY = new Refusal('ServiceUnavailable', 'The gateway is too busy.');
const TOO_MANY = new Refusal('ServiceUnavailable', 'The gateway has too many connections.', { closes: true });

/** Refuses requests while the event loop is late: what is under way then gets the time that there is. */
export async function shedLoad(
  app: FastifyInstance,
  maxEventLoopDelayMs: number,
  refuse: (request: FastifyRequest, reply: FastifyReply, refusal: Refusal) => void,
): Promise<void> {
  await app.register(underPressure, {
    maxEventLoopDelay: maxEventLoopDelayMs,
    pressureHandler: (request, reply) => refuse(request, reply, TOO_BUSY),
  });
}

/**
 * Counts connections.
 *
 * @returns the refusal for a request on a connection too many
 */
export function capConnections(
  server: FastifyInstance['server'],
  maxConnections: number,
): (socket: Socket) => Refusal | undefined {
  const open = new Set<Socket>();
  const surplus = new WeakSet<Socket>();
  server.maxConnections = maxConnections + TOLD_CONNECTIONS;
  server.on('connection', (socket: Socket) => {
    // A connection is announced again when its parser starts over.
    if (open.has(socket)) return;
    open.add(socket);
    if (open.size > maxConnections) surplus.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return (socket) => (surplus.has(socket) ? TOO_MANY : undefined);
}
