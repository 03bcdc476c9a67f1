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
import type { ClientOrigin } from '../../http/message/fields/forwarded.ts';
import type { RequestHead } from '../../http/message/head/field-section.ts';
import { costAtAdmission, type RequestContext, type RequestSpans } from '../../stages/request-context.ts';
import { clientError, isKnownMethod, serverError, serverIn } from '../http-conventions.ts';
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
export class Spans {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /**
   * Starts the span of a request, as a child of the span that its `traceparent` names.
   *
   * @param origin what the client requested; undefined if it is not known
   */
  begin(
    head: RequestHead,
    method: string,
    startedMs: number,
    origin: ClientOrigin | undefined,
  ): RequestSpans {
    const parent = parentOf(head.headers);
    const attributes = {
      ...methodAttributes(method),
      ...(origin && {
        'url.scheme': origin.scheme,
        ...serverAttributes(`${origin.scheme}://${origin.host}`),
      }),
      'network.protocol.version': head.httpVersion,
    };
    const options = { kind: SpanKind.SERVER, startTime: unixMs(startedMs), attributes };
    const span = this.#tracer.startSpan(methodName(method), options, parent);
    return new SpansOfRequest(this.#tracer, span, trace.setSpan(parent, span), method);
  }
}

class SpansOfRequest implements RequestSpans {
  readonly traceparent: string;
  readonly #tracer: Tracer;
  readonly #span: Span;
  /** What the other spans are children of. */
  readonly #within: Context;
  readonly #method: string;
  #upstream: Span | undefined;

  constructor(tracer: Tracer, span: Span, within: Context, method: string) {
    this.#method = method;
    this.#tracer = tracer;
    this.#span = span;
    this.#within = within;
    this.traceparent = traceparentOf(span.spanContext());
  }

  forward(origin: string, path: string): readonly string[] {
    const attributes = {
      ...methodAttributes(this.#method),
      ...upstreamAttributes(origin),
      'url.full': `${origin}${path}`,
      'network.protocol.version': '1.1',
    };
    const options = { kind: SpanKind.CLIENT, startTime: unixMs(performance.now()), attributes };
    this.#upstream = this.#tracer.startSpan(methodName(this.#method), options, this.#within);
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
      const route = operation?.path;
      if (route !== undefined) this.#span.updateName(`${methodName(method)} ${route}`);
      this.#span.setAttributes(requestAttributes(context, status));
      if (status >= 500) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    } else this.#upstream?.end(endTime);
    this.#span.end(endTime);
  }

  #recordCharge(context: RequestContext): void {
    const { chargeAskedMs, chargeMs, charged, settledCost } = context;
    if (chargeAskedMs === undefined || chargeMs === undefined) return;
    const attributes = present({
      'weir.cost': costAtAdmission(context),
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

  #endUpstream(context: RequestContext, endTime: number): void {
    const span = this.#upstream;
    if (span === undefined) return;
    const error = clientError(context);
    span.setAttributes(present({ 'http.response.status_code': context.upstreamStatus, 'error.type': error }));
    if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(endTime);
  }
}

function requestAttributes(context: RequestContext, status: number): Attributes {
  const { requestId, target, clientAddress, operation, caller, charged, refusal } = context;
  return present({
    'url.path': target?.path,
    'http.route': operation?.path,
    'client.address': clientAddress,
    'http.response.status_code': status === 0 ? undefined : status,
    'error.type': serverError(context, status),
    'weir.request_id': requestId,
    'weir.operation': operation?.id,
    'weir.account': caller?.account,
    'weir.organization': caller?.organization,
    'weir.outcome': charged?.outcome ?? (refusal === undefined ? 'free' : 'refused'),
    'weir.reason': refusal?.code,
  });
}

function methodAttributes(method: string): Attributes {
  if (isKnownMethod(method)) return { 'http.request.method': method };
  return { 'http.request.method': '_OTHER', 'http.request.method_original': method };
}

/** The method in the name of a span: `HTTP` for one that is not known. */
function methodName(method: string): string {
  return isKnownMethod(method) ? method : 'HTTP';
}

/** By origin: a gateway has few upstreams. */
const upstreams = new Map<string, Attributes>();

function upstreamAttributes(origin: string): Attributes {
  let attributes = upstreams.get(origin);
  if (attributes === undefined) {
    attributes = serverAttributes(origin);
    upstreams.set(origin, attributes);
  }
  return attributes;
}

/** Empty if the client has sent an invalid host. */
function serverAttributes(origin: string): Attributes {
  const server = serverIn(origin);
  return server === undefined ? {} : { 'server.address': server.address, 'server.port': server.port };
}

/** Of a reading of `performance.now()`. The SDK would convert each reading by another offset, off by up to a millisecond. */
function unixMs(monotonicMs: number): number {
  return unixUs(monotonicMs) / 1000;
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
