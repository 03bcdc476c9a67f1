import {
  type Attributes,
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import { version } from '../../config/package.ts';
import { unixUs } from '../../domain/clock.ts';
import type { FieldValues } from '../../domain/field-name.ts';
import {
  costOf,
  type RequestContext,
  type RequestSpans,
  type Tracing,
} from '../../stages/request-context.ts';
import { isTraceparent } from '../log/traceparent.ts';
import type { OtlpProtocol } from './signal.ts';

/** Opens the part of the SDK that records spans and sends them. */
export async function openTracing(protocol: OtlpProtocol, resource: Resource) {
  const provider = new BasicTracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor(await exporterOf(protocol))],
  });
  return { provider, tracing: new Spans(provider.getTracer('weir', version)) };
}

async function exporterOf(protocol: OtlpProtocol): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

/**
 * The spans of requests: one for the request, and within it one for the charge and one for the call to the upstream. Names and
 * attributes follow OpenTelemetry's HTTP conventions; `weir.*` are our own. They never have a token, a query or a body.
 */
class Spans implements Tracing {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  begin(headers: FieldValues, method: string, startedMs: number): RequestSpans {
    const parent = parentOf(headers);
    const attributes = { 'http.request.method': method };
    const options = { kind: SpanKind.SERVER, startTime: unixMs(startedMs), attributes };
    const span = this.#tracer.startSpan(method, options, parent);
    return new SpansOfRequest(this.#tracer, span, trace.setSpan(parent, span));
  }
}

class SpansOfRequest implements RequestSpans {
  readonly traceparent: string;
  readonly #tracer: Tracer;
  readonly #span: Span;
  /** What the other spans are children of. */
  readonly #within: Context;
  #upstream: Span | undefined;

  constructor(tracer: Tracer, span: Span, within: Context) {
    this.#tracer = tracer;
    this.#span = span;
    this.#within = within;
    this.traceparent = traceparentOf(span.spanContext());
  }

  forward(origin: string): readonly string[] {
    const attributes = serverAttributes(origin);
    const options = { kind: SpanKind.CLIENT, startTime: unixMs(performance.now()), attributes };
    this.#upstream = this.#tracer.startSpan('upstream', options, this.#within);
    const spanContext = this.#upstream.spanContext();
    const fields = ['traceparent', traceparentOf(spanContext)];
    const state = spanContext.traceState?.serialize();
    if (state) fields.push('tracestate', state);
    return fields;
  }

  end(context: RequestContext, status: number, totalMs: number): void {
    const endTime = unixMs(context.startedMs + totalMs);
    if (this.#span.isRecording()) {
      this.#recordCharge(context);
      this.#endUpstream(context, endTime);
      const { method, operation } = context;
      if (operation?.listed) this.#span.updateName(named(method, operation.id));
      this.#span.setAttributes(requestAttributes(context, status));
      if (status >= 500) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    } else this.#upstream?.end(endTime);
    this.#span.end(endTime);
  }

  #recordCharge(context: RequestContext): void {
    const { chargeAskedMs, chargeMs, charged, settledCost } = context;
    if (chargeAskedMs === undefined || chargeMs === undefined) return;
    const attributes = present({
      'weir.cost': costOf(context),
      'weir.settled': settledCost,
      'weir.outcome': charged?.outcome,
      'weir.bucket': charged?.outcome === 'denied' ? charged.bucket : undefined,
      'error.type': charged?.outcome === 'uncounted' ? charged.reason : undefined,
    });
    const options = { startTime: unixMs(chargeAskedMs), attributes };
    const span = this.#tracer.startSpan('charge', options, this.#within);
    if (charged?.outcome === 'uncounted') span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(unixMs(chargeAskedMs + chargeMs));
  }

  #endUpstream({ method, upstreamStatus, upstreamError }: RequestContext, endTime: number): void {
    const span = this.#upstream;
    if (span === undefined) return;
    const isError = upstreamError !== undefined || (upstreamStatus ?? 0) >= 400;
    const errorType = upstreamError ?? `${upstreamStatus}`;
    span.setAttributes(
      present({
        'http.request.method': method,
        'http.response.status_code': upstreamStatus,
        'error.type': isError ? errorType : undefined,
      }),
    );
    if (isError) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(endTime);
  }
}

function requestAttributes(context: RequestContext, status: number): Attributes {
  const { requestId, target, clientAddress, operation, caller, charged, refusal } = context;
  const isError = status >= 500;
  return present({
    'url.path': target?.path,
    'client.address': clientAddress,
    'http.response.status_code': status === 0 ? undefined : status,
    'error.type': isError ? (refusal?.code ?? `${status}`) : undefined,
    'weir.request_id': requestId,
    'weir.operation': operation?.id,
    'weir.account': caller?.account,
    'weir.organization': caller?.organization,
    'weir.outcome': charged?.outcome ?? (refusal === undefined ? 'free' : 'refused'),
    'weir.reason': refusal?.code,
  });
}

/** By origin: a gateway has few upstreams. */
const servers = new Map<string, Attributes>();

function serverAttributes(origin: string): Attributes {
  let attributes = servers.get(origin);
  if (attributes === undefined) {
    const { hostname, port, protocol } = new URL(origin);
    const defaultPort = protocol === 'https:' ? 443 : 80;
    attributes = { 'server.address': hostname, 'server.port': Number(port) || defaultPort };
    servers.set(origin, attributes);
  }
  return attributes;
}

/** Of a reading of `performance.now()`. The SDK would convert each reading by another offset, off by up to a millisecond. */
function unixMs(monotonicMs: number): number {
  return unixUs(monotonicMs) / 1000;
}

/** The name of an operation without an id begins with its method. */
function named(method: string, id: string): string {
  return id.startsWith(`${method} `) ? id : `${method} ${id}`;
}

function present(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}

function parentOf({ traceparent, tracestate }: FieldValues): Context {
  if (!isTraceparent(traceparent)) return ROOT_CONTEXT;
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  const traceFlags = Number.parseInt(flags, 16) & 1;
  const state = tracestate === undefined ? {} : { traceState: createTraceState(`${tracestate}`) };
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true, ...state });
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`;
}
