/** Hono: asks Weir about each request, and sends its refusal to the client. `app.use(weir('http://127.0.0.1:9000'))` */
export const weir = (url) => async (context, next) => {
  const token = /^Bearer (.+)$/i.exec(context.req.header('authorization') ?? '')?.[1];
  const { pathname, search } = new URL(context.req.url);
  const body = JSON.stringify({ token, method: context.req.method, path: pathname + search });
  const answer = await fetch(`${url}/decide`, { method: 'POST', body, signal: AbortSignal.timeout(250) })
    .then((reply) => (reply.ok ? reply.json() : undefined))
    .catch(() => undefined);
  if (answer?.allowed !== false) await next();
  else context.res = Response.json(answer.problem, { status: answer.status, headers: { 'Content-Type': 'application/problem+json' } });
  // Without an answer the request is served, uncounted.
  const headers = answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' };
  for (const [name, value] of Object.entries(headers)) context.header(name, value);
};
