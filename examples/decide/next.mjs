/** Next.js, in proxy.js (middleware.js before Next.js 16): `export const proxy = weir(NextResponse, 'http://127.0.0.1:9000')` */
export const weir = (NextResponse, url) => async (request) => {
  const token = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  const { pathname, search } = new URL(request.url);
  const body = JSON.stringify({ token, method: request.method, path: pathname + search });
  const answer = await fetch(`${url}/decide`, { method: 'POST', body, signal: AbortSignal.timeout(250) })
    .then((reply) => (reply.ok ? reply.json() : undefined))
    .catch(() => undefined);
  // Without an answer the request is served, uncounted.
  const headers = answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' };
  if (answer?.allowed !== false) return NextResponse.next({ headers });
  return Response.json(answer.problem, { status: answer.status, headers: { ...headers, 'Content-Type': 'application/problem+json' } });
};
