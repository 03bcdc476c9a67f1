/**
 * Hono: asks Weir about each request, and sends its refusal to the client. `app.use(weir('http://127.0.0.1:9000'))`
 *
 * With `{ hold: '60s' }`, it also reports the end of each response, so that limits on requests in flight apply. A route that knows the
 * cost of its response calls `context.set('cost', 812)`; a response of 5xx costs nothing, and others cost what was reserved.
 */
export const weir = (url, { hold } = {}) => async (context, next) => {
  const token = /^Bearer (.+)$/i.exec(context.req.header('authorization') ?? '')?.[1];
  const { pathname, search } = new URL(context.req.url);
  const body = JSON.stringify({ token, method: context.req.method, path: pathname + search, hold });
  const answer = await fetch(`${url}/decide`, { method: 'POST', body, signal: AbortSignal.timeout(250) })
    .then((reply) => (reply.ok ? reply.json() : undefined))
    .catch(() => undefined);
  if (answer?.allowed !== false) await next();
  else context.res = Response.json(answer.problem, { status: answer.status, headers: { 'Content-Type': 'application/problem+json' } });
  if (answer?.receipt) {
    const { status } = context.res;
    const settle = () => {
      const cost = status >= 500 ? 0 : (context.get('cost') ?? answer.cost);
      // What Weir does not get to know costs what was reserved.
      fetch(`${url}/settle`, { method: 'POST', body: JSON.stringify({ receipt: answer.receipt, cost }) }).catch(() => undefined);
    };
    if (context.res.body) context.res = new Response(ReadableStream.from(thenCall(context.res.body, settle)), context.res);
    else settle();
  }
  // Without an answer the request is served, uncounted.
  const headers = answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' };
  for (const [name, value] of Object.entries(headers)) context.header(name, value);
};

/** Calls `ended` when the body has ended, or nobody reads it any more. */
async function* thenCall(body, ended) {
  try {
    yield* body;
  } finally {
    ended();
  }
}
