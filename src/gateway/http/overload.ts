/** Load shedding: an immediate 503, uncharged, and never a 429. */
import type { Socket } from 'node:net';
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../problems.ts';
import { connectionEvent } from '../tls/server.ts';

/** Connections above the limit that still get a 503; beyond these, connections are closed without a response. */
const TOLD_CONNECTIONS = 256;

const TOO_BUSY = new Refusal('ServiceUnavailable', 'The gateway is too busy.');
const TOO_MANY = new Refusal('ServiceUnavailable', 'The gateway has too many connections.', { closes: true });

/** Refuses requests while the event loop is late, so that requests in progress can finish. */
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
 * @returns the refusal for requests on a connection above the limit
 */
export function capConnections(
  server: FastifyInstance['server'],
  maxConnections: number,
): (socket: Socket) => Refusal | undefined {
  const open = new Set<Socket>();
  const surplus = new WeakSet<Socket>();
  server.maxConnections = maxConnections + TOLD_CONNECTIONS;
  server.on(connectionEvent(server), (socket: Socket) => {
    // Node emits `connection` again when a connection gets a new parser.
    if (open.has(socket)) return;
    open.add(socket);
    if (open.size > maxConnections) surplus.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return (socket) => (surplus.has(socket) ? TOO_MANY : undefined);
}
