/** Next.js, in proxy.js (middleware.js before Next.js 16): `export const proxy = weir(NextResponse, 'http://127.0.0.1:9000')` */
export const weir = (NextResponse, url) => async (request) => {
  const answer = await decide(url, request);
  // Without an answer the request is served, uncounted.
  const headers = answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' };
  if (answer?.allowed !== false) return NextResponse.next({ headers });
  return refusal(answer);
};

/**
 * The same for one route, whose end it reports, so that limits on requests in flight apply: a proxy.js does not see the end of a response.
 * The handler sets `held.cost` if it knows the cost of its response. A response of 5xx, or an error, costs nothing.
 * `export const POST = holding('http://127.0.0.1:9000', '60s', async (request, held) => …)`
 */
export const holding = (url, hold, handler) => async (request) => {
  const answer = await decide(url, request, hold);
  if (answer?.allowed === false) return refusal(answer);
  const held = { cost: answer?.cost };
  const settle = () => {
    if (!answer?.receipt) return;
    const body = JSON.stringify({ receipt: answer.receipt, cost: held.cost });
    // What Weir does not get to know costs what was reserved.
    fetch(`${url}/settle`, { method: 'POST', body }).catch(() => undefined);
  };
  let response;
  try {
    response = await handler(request, held);
  } finally {
    if (!(response?.status < 500)) held.cost = 0;
    if (!response?.body) settle();
  }
  const body = response.body && ReadableStream.from(thenCall(response.body, settle));
  const served = new Response(body, response);
  const headers = answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' };
  for (const [name, value] of Object.entries(headers)) served.headers.set(name, value);
  return served;
};

function decide(url, request, hold) {
  const token = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  const { pathname, search } = new URL(request.url);
  const body = JSON.stringify({ token, method: request.method, path: pathname + search, hold });
  return fetch(`${url}/decide`, { method: 'POST', body, signal: AbortSignal.timeout(250) })
    .then((reply) => (reply.ok ? reply.json() : undefined))
    .catch(() => undefined);
}

function refusal({ problem, status, headers }) {
  return Response.json(problem, { status, headers: { ...headers, 'Content-Type': 'application/problem+json' } });
}

/** Calls `ended` when the body has ended, or nobody reads it any more. */
async function* thenCall(body, ended) {
  try {
    yield* body;
  } finally {
    ended();
  }
}
