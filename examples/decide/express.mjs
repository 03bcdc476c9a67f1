/**
 * Express: asks Weir about each request, and sends its refusal to the client. `app.use(weir('http://127.0.0.1:9000'))`
 *
 * With `{ hold: '60s' }`, it also reports the end of each request, so that limits on requests in flight apply. A route that knows the
 * cost of its response sets `response.locals.cost`; a response of 5xx costs nothing, and others cost what was reserved.
 */
export const weir = (url, { hold } = {}) => async (request, response, next) => {
  const token = /^Bearer (.+)$/i.exec(request.get('authorization') ?? '')?.[1];
  const body = JSON.stringify({ token, method: request.method, path: request.originalUrl, hold });
  const answer = await fetch(`${url}/decide`, { method: 'POST', body, signal: AbortSignal.timeout(250) })
    .then((reply) => (reply.ok ? reply.json() : undefined))
    .catch(() => undefined);
  const settle = () => {
    const cost = response.statusCode >= 500 ? 0 : (response.locals.cost ?? answer.cost);
    // What Weir does not get to know costs what was reserved.
    fetch(`${url}/settle`, { method: 'POST', body: JSON.stringify({ receipt: answer.receipt, cost }) }).catch(() => undefined);
  };
  if (answer?.receipt) response.destroyed ? settle() : response.on('close', settle);
  // Without an answer the request is served, uncounted.
  response.set(answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' });
  if (answer?.allowed === false) response.status(answer.status).type('application/problem+json').send(answer.problem);
  else next();
};
