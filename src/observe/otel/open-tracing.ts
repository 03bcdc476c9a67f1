import type { Resource } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import { version } from '../../config/package.ts';
import type { OtlpProtocol } from './signal.ts';
import { Spans } from './spans.ts';

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
