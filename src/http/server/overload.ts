/** Load shedding: an immediate 503, uncharged, and never a 429. */
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../domain/problems.ts';
import type { Exchange } from '../../stages/exchange.ts';

const TOO_BUSY = new Refusal('ServiceUnavailable', 'The gateway is too busy.');
const TOO_MANY = new Refusal('ServiceUnavailable', 'The gateway has too many connections.', { closes: true });

/**
 * Refuses requests while the event loop is late, so that requests in progress can finish.
 *
 * @returns the refusal for a request that Fastify does not see; undefined if it can be served
 */
export async function shedLoad(
  app: FastifyInstance,
  maxEventLoopDelayMs: number,
  refuse: (request: FastifyRequest, reply: FastifyReply, refusal: Refusal) => void,
): Promise<() => Refusal | undefined> {
  await app.register(underPressure, {
    maxEventLoopDelay: maxEventLoopDelayMs,
    pressureHandler: (request, reply) => refuse(request, reply, TOO_BUSY),
  });
  return () => (app.isUnderPressure() ? TOO_BUSY : undefined);
}

/** The refusal of a request on a connection above the port's limit. */
export function surplusRefusal({ isSurplus }: Exchange): Refusal | undefined {
  return isSurplus ? TOO_MANY : undefined;
}
