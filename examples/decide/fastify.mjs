/** Fastify: asks Weir about each request, and sends its refusal to the client. `app.addHook('onRequest', weir('http://127.0.0.1:9000'))` */
export const weir = (url) => async (request, reply) => {
  const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const body = JSON.stringify({ token, method: request.method, path: request.originalUrl });
  const answer = await fetch(`${url}/decide`, { method: 'POST', body, signal: AbortSignal.timeout(250) })
    .then((response) => (response.ok ? response.json() : undefined))
    .catch(() => undefined);
  // Without an answer the request is served, uncounted.
  reply.headers(answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' });
  if (answer?.allowed === false) return reply.code(answer.status).type('application/problem+json').send(answer.problem);
};
