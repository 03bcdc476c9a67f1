/**
 * Hono: asks Weir about each request, and sends its refusal to the client. `app.use(weir('http://127.0.0.1:9000'))`, before what reads bodies.
 * Handlers find out who calls from `X-Account-Id` and the other fields that the gateway sets.
 *
 * With `{ hold: '60s' }`, it also reports the end of each response, so that limits on requests in flight apply. A route that knows the
 * cost of its response calls `context.set('cost', 812)`; a response of 5xx costs nothing, and others cost what was reserved.
 *
 * `{ address: (context) => … }` finds the client's address, which is the peer of @hono/node-server otherwise. Behind a proxy, it may also give
 * the whole `X-Forwarded-For`.
 */
import { decide, setCaller, settle, watched } from './ask.mjs';

const peer = ({ env }) => env?.incoming?.socket.remoteAddress;

export const weir = (url, { hold, address = peer } = {}) => async (context, next) => {
  const { raw: request } = context.req;
  const { method, headers } = request;
  const { pathname, search } = new URL(request.url);
  const question = { method, path: pathname + search, hold };
  const answer = await decide(url, question, (name) => headers.get(name), address(context));
  // The fields of a request cannot be changed everywhere.
  context.req.raw = new Request(request, { headers: setCaller(Object.fromEntries(headers), answer) });
  if (answer?.allowed !== false) await next();
  else context.res = Response.json(answer.problem, { status: answer.status, headers: { 'Content-Type': 'application/problem+json' } });
  if (answer?.receipt) {
    const { status } = context.res;
    const ended = () => settle(url, answer, status >= 500 ? 0 : (context.get('cost') ?? answer.cost));
    context.res = watched(context.res, method, ended);
  }
  // Without an answer the request is served, uncounted.
  const added = answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' };
  for (const [name, value] of Object.entries(added)) context.header(name, value);
};
