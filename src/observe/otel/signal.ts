import type { Logger } from 'pino';

/** How telemetry is sent to the collector. */
export type OtlpProtocol = 'http/protobuf' | 'http/json';

/** A kind of telemetry that the standard variables of OpenTelemetry turn on. */
interface Signal {
  /** In the names of its variables. */
  readonly name: 'TRACES' | 'METRICS';
  /** The values of its `OTEL_*_EXPORTER`. */
  readonly exporters: readonly string[];
  /** What is missing while it is off. */
  readonly off: string;
}

export const TRACES: Signal = { name: 'TRACES', exporters: ['otlp', 'none'], off: 'requests are not traced' };

/** The admin port serves Prometheus in any case. */
export const METRICS: Signal = {
  name: 'METRICS',
  exporters: ['otlp', 'none', 'prometheus'],
  off: 'metrics are not exported',
};

/** The protocol of a signal that is on: by an OTLP endpoint, or by `otlp` as its exporter. Undefined if it is off. */
export function otlpProtocol(signal: Signal, env: NodeJS.ProcessEnv, log: Logger): OtlpProtocol | undefined {
  if (!isOn(signal, env, log)) return undefined;
  const endpoint = endpointOf(signal, env);
  // The SDK would send to another place, this machine, and say so in a warning alone.
  if (endpoint !== undefined && !isHttpUrl(endpoint)) {
    // Not shown: what is no URL may have a password that is not masked.
    log.error(`${signal.off}: OTEL_EXPORTER_OTLP_ENDPOINT must be a URL such as http://collector:4318`);
    return undefined;
  }
  const protocol =
    env[`OTEL_EXPORTER_OTLP_${signal.name}_PROTOCOL`] || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/protobuf';
  if (protocol === 'http/protobuf' || protocol === 'http/json') return protocol;
  log.error({ protocol }, `${signal.off}: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json`);
  return undefined;
}

/** Where a signal is sent; undefined for the default of OpenTelemetry. */
export function endpointOf({ name }: Signal, env: NodeJS.ProcessEnv): string | undefined {
  return env[`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`] || env.OTEL_EXPORTER_OTLP_ENDPOINT;
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function isOn(signal: Signal, env: NodeJS.ProcessEnv, log: Logger): boolean {
  if (env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true') return false;
  const variable = `OTEL_${signal.name}_EXPORTER`;
  const exporters = env[variable]?.split(',').map((name) => name.trim());
  if (exporters === undefined || exporters.join('') === '') return Boolean(endpointOf(signal, env));
  const others = exporters.filter((name) => !signal.exporters.includes(name));
  if (others.length > 0) {
    const available = signal.exporters.join(', ').replace(/, (\w+)$/, ' and $1');
    log.warn({ exporters: others }, `only ${available} are available as ${variable}`);
  }
  return exporters.includes('otlp');
}
