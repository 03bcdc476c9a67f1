/**
 * Next.js, in proxy.js (middleware.js before Next.js 16): `export const proxy = weir(NextResponse, 'http://127.0.0.1:9000')`
 * Handlers find out who calls from `X-Account-Id` and the other fields that the gateway sets. The client's address is read from
 * `X-Forwarded-For`, which a proxy in front of Next.js has to set.
 */
import { decide, setCaller, settle, watched } from './ask.mjs';

export const weir = (NextResponse, url) => async (request) => {
  const answer = await ask(url, request);
  if (answer?.allowed === false) return refusal(answer);
  const fields = setCaller(Object.fromEntries(request.headers), answer);
  // Without an answer the request is served, uncounted.
  const headers = answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' };
  return NextResponse.next({ request: { headers: new Headers(fields) }, headers });
};

/**
 * The same for one route, whose end it reports, so that limits on requests in flight apply: a proxy.js does not see the end of a response.
 * The handler finds out who calls from `held.account` and `held.principal`, and sets `held.cost` if it knows the cost of its response. A
 * response of 5xx, or an error, costs nothing.
 * `export const POST = holding('http://127.0.0.1:9000', '60s', async (request, held) => …)`
 */
export const holding = (url, hold, handler) => async (request) => {
  const answer = await ask(url, request, hold);
  if (answer?.allowed === false) return refusal(answer);
  const held = { ...answer };
  const ended = () => {
    if (held.receipt) settle(url, held, held.cost);
  };
  try {
    const response = await handler(request, held);
    if (response.status >= 500) held.cost = 0;
    const served = new Response(response.body, response);
    const headers = answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' };
    for (const [name, value] of Object.entries(headers)) served.headers.set(name, value);
    return watched(served, request.method, ended);
  } catch (error) {
    held.cost = 0;
    ended();
    throw error;
  }
};

function ask(url, { method, url: requested, headers }, hold) {
  const { pathname, search } = new URL(requested);
  const field = (name) => headers.get(name);
  return decide(url, { method, path: pathname + search, hold }, field, field('x-forwarded-for'));
}

function refusal({ problem, status, headers }) {
  return Response.json(problem, { status, headers: { ...headers, 'Content-Type': 'application/problem+json' } });
}
