/**
 * Fastify: asks Weir about each request, and sends its refusal to the client. `app.addHook('onRequest', weir('http://127.0.0.1:9000'))`
 *
 * With `{ hold: '60s' }`, it also reports the end of each request, so that limits on requests in flight apply. A route that knows the
 * cost of its response sets `request.cost`; a response of 5xx costs nothing, and others cost what was reserved.
 */
export const weir = (url, { hold } = {}) => async (request, reply) => {
  const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const body = JSON.stringify({ token, method: request.method, path: request.originalUrl, hold });
  const answer = await fetch(`${url}/decide`, { method: 'POST', body, signal: AbortSignal.timeout(250) })
    .then((response) => (response.ok ? response.json() : undefined))
    .catch(() => undefined);
  const settle = () => {
    const cost = reply.raw.statusCode >= 500 ? 0 : (request.cost ?? answer.cost);
    // What Weir does not get to know costs what was reserved.
    fetch(`${url}/settle`, { method: 'POST', body: JSON.stringify({ receipt: answer.receipt, cost }) }).catch(() => undefined);
  };
  if (answer?.receipt) reply.raw.destroyed ? settle() : reply.raw.on('close', settle);
  // Without an answer the request is served, uncounted.
  reply.headers(answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' });
  if (answer?.allowed === false) return reply.code(answer.status).type('application/problem+json').send(answer.problem);
};
