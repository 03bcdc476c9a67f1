/** What OpenTelemetry's HTTP conventions say of both spans and metrics. */
import type { RequestContext } from '../stages/request-context.ts';

/** The methods that the conventions call known. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
  ...['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE'],
]);

export function isKnownMethod(method: string): boolean {
  return KNOWN_METHODS.has(method);
}

/** `error.type` of a request that the gateway served; undefined if it is no error of the server. */
export function serverError({ refusal }: RequestContext, status: number): string | undefined {
  return status >= 500 ? (refusal?.code ?? `${status}`) : undefined;
}

/** `error.type` of a call to the upstream; undefined if it succeeded. */
export function clientError({ upstreamStatus, upstreamError }: RequestContext): string | undefined {
  return upstreamError ?? ((upstreamStatus ?? 0) >= 400 ? `${upstreamStatus}` : undefined);
}

/** Address and port in an origin such as `https://a.test`; undefined if it is invalid. */
export function serverIn(origin: string) {
  if (!URL.canParse(origin)) return undefined;
  const { hostname, port, protocol } = new URL(origin);
  const address = hostname.replace(/^\[|\]$/g, '');
  return { address, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}
