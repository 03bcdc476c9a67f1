import type { Registry } from 'prom-client';
import type { KubernetesObserver } from '../../config/kubernetes/follow.ts';
import type { ReloadedFile, ReloadObserver } from '../../config/watch.ts';
import { counter, gauge } from './register.ts';

const FILES: readonly ReloadedFile[] = ['limits', 'operations', 'identities', 'certificates', 'descriptors'];

export interface ReloadMetrics extends ReloadObserver {
  /** The version of the limits in force; empty before they are known. */
  limitsVersion(): string;
  /** Called with the version of the operations in force, at startup and after every change. */
  operationsInForce(sha: string): void;
  /** Empty before they are known. */
  operationsVersion(): string;
  /** Called with the end of the certificate that a port presents, in Unix milliseconds. */
  certificateInUse(port: string, endsAtMs: number): void;
}

/** Metrics of configuration reloads. */
export function reloadMetrics(registry: Registry): ReloadMetrics {
  const reloads = counter(registry, 'weir_reloads_total', 'Reloads of changed files, by file and outcome.', {
    file: FILES,
    outcome: ['success', 'failure'],
  });
  const successOf = (file: ReloadedFile) => {
    const help = `1 if the last reload of the ${file} succeeded, 0 if it was refused and the previous version is in force.`;
    const one = gauge(registry, `weir_${file}_last_reload_successful`, help);
    one.set(1);
    return one;
  };
  const successful = {
    limits: successOf('limits'),
    operations: successOf('operations'),
    identities: successOf('identities'),
    certificates: successOf('certificates'),
    descriptors: successOf('descriptors'),
  };
  const limits = versionGauge(
    registry,
    'weir_limits_info',
    'Always 1. Replicas with the same limits files in force have the same `sha`.',
  );
  const operations = versionGauge(
    registry,
    'weir_operations_info',
    'Always 1. Replicas whose operations have the same names and costs have the same `sha`.',
  );
  const certificateEnds = gauge(
    registry,
    'weir_certificate_expiry_timestamp_seconds',
    'Unix time at which the certificate of a port expires.',
    'port',
  );
  return {
    certificateInUse: (port, endsAtMs) => certificateEnds.set({ port }, endsAtMs / 1_000),
    operationsVersion: operations.version,
    operationsInForce: operations.replace,
    limitsVersion: limits.version,
    limitsInForce: limits.replace,
    reloaded(file) {
      reloads.inc({ file, outcome: 'success' });
      successful[file].set(1);
    },
    reloadRefused(file) {
      reloads.inc({ file, outcome: 'failure' });
      successful[file].set(0);
    },
  };
}

/** A gauge of 1 whose label is the version in force. */
function versionGauge(registry: Registry, name: string, help: string) {
  const info = gauge(registry, name, help, 'sha');
  let version = '';
  return {
    version: () => version,
    replace(sha: string) {
      version = sha;
      info.reset();
      info.set({ sha }, 1);
    },
  };
}

/** Metrics of the watches on mounted ConfigMaps. */
export function kubernetesMetrics(registry: Registry): KubernetesObserver {
  const connected = gauge(
    registry,
    'weir_kubernetes_watch_connected',
    '1 while the object is watched through the API server, 0 while only its mounted files are polled.',
    'object',
  );
  return {
    watchConnected: (name, isConnected) => connected.set({ object: name }, isConnected ? 1 : 0),
  };
}
