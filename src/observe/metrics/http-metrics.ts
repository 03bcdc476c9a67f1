/**
 * The HTTP metrics of OpenTelemetry's conventions: https://opentelemetry.io/docs/specs/semconv/http/http-metrics/. At `/metrics`, names
 * and labels are written as OpenTelemetry's specification maps them to Prometheus.
 */
import type { ClientOrigin } from '../../http/message/fields/forwarded.ts';
import type { RequestHead } from '../../http/message/head/field-section.ts';
import type { RequestContext, RequestSource } from '../../stages/request-context.ts';
import { clientError, isKnownMethod, serverError, serverIn } from '../http-conventions.ts';
import { LabelledHistogram } from './labelled-histogram.ts';
import type { Registry } from './prometheus-client.ts';

/** In seconds, as the conventions advise. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

const METHOD = 'http.request.method';
const STATUS = 'http.response.status_code';
const ERROR = 'error.type';
const VERSION = 'network.protocol.version';
const SERVER = ['url.scheme', METHOD, 'http.route', STATUS, ERROR, VERSION];
const CLIENT = ['server.address', 'server.port', METHOD, STATUS, ERROR, VERSION];

/** Stands for all series beyond the limit (specification of the metrics SDK, cardinality limits). */
const OVERFLOW = 'otel.metric.overflow';

const NUMBERS: ReadonlySet<string> = new Set([STATUS, 'server.port']);

/** The names of the conventions by the names at `/metrics`. */
export const CONVENTIONAL_NAMES: ReadonlyMap<string, string> = new Map(
  ['http.server.request.duration', 'http.client.request.duration'].map((name) => [
    `${labelOf(name)}_seconds`,
    name,
  ]),
);

const ATTRIBUTES = new Map([...SERVER, ...CLIENT, OVERFLOW].map((name) => [labelOf(name), name]));

/** The attributes of the conventions by labels of `/metrics`. */
export function conventionalAttributes(labels: Readonly<Record<string, unknown>>) {
  const attributes: Record<string, string | number | boolean> = {};
  for (const [label, value] of Object.entries(labels)) {
    const name = ATTRIBUTES.get(label) ?? label;
    const isText = !NUMBERS.has(name) && name !== OVERFLOW;
    attributes[name] = isText ? `${value}` : name === OVERFLOW || Number(value);
  }
  return attributes;
}

/** Measures the requests of clients, and the calls to upstreams. Decisions for other proxies are not requests of clients. */
export class HttpMetrics {
  readonly #server: LabelledHistogram;
  readonly #client: LabelledHistogram;
  /** Address and port by origin. */
  readonly #upstreams = new Map<string, readonly [address: string, port: string]>();

  constructor(registry: Registry) {
    const open = (name: string, help: string, attributes: readonly string[]) =>
      new LabelledHistogram(registry, name, help, {
        bounds: SECONDS,
        labelNames: attributes.map(labelOf),
        overflow: labelOf(OVERFLOW),
      });
    this.#server = open('http_server_request_duration_seconds', 'Duration of HTTP server requests.', SERVER);
    this.#client = open('http_client_request_duration_seconds', 'Duration of HTTP client requests.', CLIENT);
  }

  /** @param status 0 if the client left before a response began */
  record(
    context: RequestContext<RequestSource & { readonly head: RequestHead }>,
    status: number,
    scheme: ClientOrigin['scheme'],
  ): void {
    const nowMs = performance.now();
    const { method, operation, source, startedMs } = context;
    const known = isKnownMethod(method) ? method : '_OTHER';
    const code = status === 0 ? '' : `${status}`;
    const error = serverError(context, status) ?? '';
    const seconds = (nowMs - startedMs) / 1_000;
    const { httpVersion } = source.head;
    this.#server.observe(seconds, [scheme, known, operation?.path ?? '', code, error, httpVersion]);
    this.#recordCall(context, known, nowMs);
  }

  /** A call that got no answer and did not fail ended while it waited for its turn, or because its client left. */
  #recordCall(context: RequestContext, method: string, nowMs: number): void {
    const { forwarded, upstreamStatus, upstreamError, queuedMs = 0 } = context;
    if (forwarded === undefined || (upstreamStatus === undefined && upstreamError === undefined)) return;
    const [address, port] = this.#serverAt(forwarded.origin);
    const seconds = (nowMs - forwarded.atMs - queuedMs) / 1_000;
    const error = clientError(context) ?? '';
    this.#client.observe(seconds, [address, port, method, `${upstreamStatus ?? ''}`, error, '1.1']);
  }

  #serverAt(origin: string): readonly [address: string, port: string] {
    let server = this.#upstreams.get(origin);
    if (server === undefined) {
      const { address, port } = serverIn(origin) ?? { address: origin, port: 80 };
      server = [address, `${port}`];
      this.#upstreams.set(origin, server);
    }
    return server;
  }
}

/** Specification "Prometheus and OpenMetrics Compatibility": other characters than letters and digits become `_`. */
function labelOf(attribute: string): string {
  return attribute.replaceAll('.', '_');
}
