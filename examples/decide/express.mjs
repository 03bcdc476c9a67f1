/** Express: asks Weir about each request, and sends its refusal to the client. `app.use(weir('http://127.0.0.1:9000'))` */
export const weir = (url) => async (request, response, next) => {
  const token = /^Bearer (.+)$/i.exec(request.get('authorization') ?? '')?.[1];
  const body = JSON.stringify({ token, method: request.method, path: request.originalUrl });
  const answer = await fetch(`${url}/decide`, { method: 'POST', body, signal: AbortSignal.timeout(250) })
    .then((reply) => (reply.ok ? reply.json() : undefined))
    .catch(() => undefined);
  // Without an answer the request is served, uncounted.
  response.set(answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' });
  if (answer?.allowed === false) response.status(answer.status).type('application/problem+json').send(answer.problem);
  else next();
};
