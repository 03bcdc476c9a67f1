/**
 * A program: `fastify-server.mjs LIMITER PORT UPSTREAM_URL REDIS_PORT LIMIT [CERTIFICATE KEY]`, with TLS if there is a certificate.
 * JavaScript, so that no loader stands in it.
 */
import { readFileSync } from 'node:fs';
import httpProxy from '@fastify/http-proxy';
import rateLimit from '@fastify/rate-limit';
import Fastify from 'fastify';
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';

const [limiter = 'none', port, upstream, redisPort, limit, certificate, key] = process.argv.slice(2);

const https = certificate && { cert: readFileSync(certificate), key: readFileSync(key) };
const app = Fastify({ logger: false, ...(https && { https }) });
if (limiter === '@fastify/rate-limit') await addFastifyRateLimit(Number(limit));
if (limiter === 'rate-limiter-flexible') addFlexible(Number(limit));
await app.register(httpProxy, { upstream });
await app.listen({ host: '127.0.0.1', port: Number(port) });

function connect() {
  return new Redis(Number(redisPort), '127.0.0.1', { enableOfflineQueue: true });
}

async function addFastifyRateLimit(max) {
  const keyGenerator = ({ headers }) => headers['x-service-account'] ?? '';
  await app.register(rateLimit, { max, timeWindow: 1000, redis: connect(), keyGenerator });
}

/** As its documentation shows it: one consume per request, and the three headers. */
function addFlexible(points) {
  const flexible = new RateLimiterRedis({
    storeClient: connect(),
    keyPrefix: 'flexible',
    points,
    duration: 1,
  });
  app.addHook('onRequest', async ({ headers }, reply) => {
    try {
      const { remainingPoints, msBeforeNext } = await flexible.consume(headers['x-service-account'] ?? '');
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
