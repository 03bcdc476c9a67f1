import type { Logger } from 'pino';
import type { Tracing } from '../log/spans.ts';

export interface RunningTracing extends Tracing {
  /** Exports what is left, for a few seconds at most. */
  close(): Promise<void>;
}

/** How spans are sent to the collector. */
export type OtlpProtocol = 'http/protobuf' | 'http/json';

/**
 * Tracing, if the standard variables of OpenTelemetry turn it on: an OTLP endpoint, or `OTEL_TRACES_EXPORTER=otlp`. Otherwise
 * undefined, and none of its modules is loaded.
 */
export async function startTracing(env: NodeJS.ProcessEnv, log: Logger): Promise<RunningTracing | undefined> {
  if (!isOn(env, log)) return undefined;
  const protocol = protocolOf(env, log);
  if (protocol === undefined) return undefined;
  const { openTracing } = await import('./open.ts');
  return openTracing(protocol, env, log);
}

function isOn(env: NodeJS.ProcessEnv, log: Logger): boolean {
  if (env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true') return false;
  const exporters = env.OTEL_TRACES_EXPORTER?.split(',').map((name) => name.trim());
  if (exporters !== undefined && exporters.join('') !== '') {
    const others = exporters.filter((name) => name !== 'otlp' && name !== 'none');
    if (others.length > 0) {
      log.warn({ exporters: others }, 'only otlp and none are available as OTEL_TRACES_EXPORTER');
    }
    return exporters.includes('otlp');
  }
  return Boolean(env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT);
}

function protocolOf(env: NodeJS.ProcessEnv, log: Logger): OtlpProtocol | undefined {
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL;
  if (!protocol) return 'http/protobuf';
  if (protocol === 'http/protobuf' || protocol === 'http/json') return protocol;
  log.error(
    { protocol },
    'requests are not traced: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json',
  );
  return undefined;
}
