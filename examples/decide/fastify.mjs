/**
 * Fastify: asks Weir about each request, and sends its refusal to the client. `app.addHook('onRequest', weir('http://127.0.0.1:9000'))`
 * Handlers find out who calls from `X-Account-Id` and the other fields that the gateway sets. Behind a proxy, set Fastify's `trustProxy`.
 *
 * With `{ hold: '60s' }`, it also reports the end of each request, so that limits on requests in flight apply. A route that knows the
 * cost of its response sets `request.cost`; a response of 5xx costs nothing, and others cost what was reserved.
 */
import { decide, setCaller, settle } from './ask.mjs';

export const weir = (url, { hold } = {}) => async (request, reply) => {
  const { method, originalUrl: path, ip } = request;
  const { headers } = request.raw;
  const answer = await decide(url, { method, path, hold }, (name) => headers[name], ip);
  const ended = () => settle(url, answer, reply.raw.statusCode >= 500 ? 0 : (request.cost ?? answer.cost));
  if (answer?.receipt) reply.raw.destroyed ? ended() : reply.raw.on('close', ended);
  setCaller(headers, answer);
  // Without an answer the request is served, uncounted.
  reply.headers(answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' });
  if (answer?.allowed === false) return reply.code(answer.status).type('application/problem+json').send(answer.problem);
};
