import { Counter, Gauge, type Registry } from 'prom-client';
import type { ReloadedFile, ReloadObserver } from '../../config/watch.ts';

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
  let inForce = '';
  let operations = '';
  const registers = [registry];
  const reloads = new Counter({
    name: 'weir_reloads_total',
    help: 'Reloads of changed files, by file and outcome.',
    labelNames: ['file', 'outcome'],
    registers,
  });
  for (const file of FILES) for (const outcome of ['success', 'failure']) reloads.inc({ file, outcome }, 0);
  const gauge = (file: ReloadedFile) => {
    const one = new Gauge({
      name: `weir_${file}_last_reload_successful`,
      help: `1 if the last reload of the ${file} succeeded, 0 if it was refused and the previous version is in force.`,
      registers,
    });
    one.set(1);
    return one;
  };
  const successful = {
    limits: gauge('limits'),
    operations: gauge('operations'),
    identities: gauge('identities'),
    certificates: gauge('certificates'),
    descriptors: gauge('descriptors'),
  };
  const limitsInfo = new Gauge({
    name: 'weir_limits_info',
    help: 'Always 1. Replicas with the same limits files in force have the same `sha`.',
    labelNames: ['sha'],
    registers,
  });
  const operationsInfo = new Gauge({
    name: 'weir_operations_info',
    help: 'Always 1. Replicas whose operations have the same names and costs have the same `sha`.',
    labelNames: ['sha'],
    registers,
  });
  return {
    certificateInUse: certificateGauge(registry),
    operationsVersion: () => operations,
    operationsInForce(sha) {
      operations = sha;
      operationsInfo.reset();
      operationsInfo.set({ sha }, 1);
    },
    limitsVersion: () => inForce,
    limitsInForce(sha) {
      inForce = sha;
      limitsInfo.reset();
      limitsInfo.set({ sha }, 1);
    },
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

function certificateGauge(registry: Registry): ReloadMetrics['certificateInUse'] {
  const ends = new Gauge({
    name: 'weir_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which the certificate of a port expires.',
    labelNames: ['port'],
    registers: [registry],
  });
  return (port, endsAtMs) => ends.set({ port }, endsAtMs / 1_000);
}
