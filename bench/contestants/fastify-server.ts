/** A program: `fastify-server.ts LIMITER PORT UPSTREAM_PORT REDIS_PORT LIMIT`. */
import httpProxy from '@fastify/http-proxy';
import rateLimit from '@fastify/rate-limit';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';

const [limiter = 'none', port, upstreamPort, redisPort, limit] = process.argv.slice(2);

const app = Fastify({ logger: false });
if (limiter === '@fastify/rate-limit') await addFastifyRateLimit(app, Number(limit));
if (limiter === 'rate-limiter-flexible') addFlexible(app, Number(limit));
await app.register(httpProxy, { upstream: `http://127.0.0.1:${upstreamPort}` });
await app.listen({ host: '127.0.0.1', port: Number(port) });

function connect(): Redis {
  return new Redis(Number(redisPort), '127.0.0.1', { enableOfflineQueue: true });
}

function accountOf(request: FastifyRequest): string {
  return String(request.headers['x-service-account'] ?? '');
}

async function addFastifyRateLimit(server: FastifyInstance, max: number): Promise<void> {
  await server.register(rateLimit, { max, timeWindow: 1000, redis: connect(), keyGenerator: accountOf });
}

/** As its documentation shows it: one consume per request, and the three headers. */
function addFlexible(server: FastifyInstance, points: number): void {
  const flexible = new RateLimiterRedis({
    storeClient: connect(),
    keyPrefix: 'flexible',
    points,
    duration: 1,
  });
  server.addHook('onRequest', async (request, reply) => {
    try {
      const { remainingPoints, msBeforeNext } = await flexible.consume(accountOf(request));
      reply.headers({
        'x-ratelimit-limit': points,
        'x-ratelimit-remaining': remainingPoints,
        'x-ratelimit-reset': Math.ceil(msBeforeNext / 1000),
      });
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      reply.header('retry-after', Math.ceil(refusal.msBeforeNext / 1000));
      return reply.code(429).send({ error: 'Too Many Requests' });
    }
    return undefined;
  });
}
