import { Counter, Gauge, type Registry } from 'prom-client';
import type { ReloadedFile, ReloadObserver } from '../../config/watch.ts';

/** Metrics of configuration reloads. */
export function reloadMetrics(registry: Registry): ReloadObserver {
  const registers = [registry];
  const reloads = new Counter({
    name: 'weir_reloads_total',
    help: 'Reloads of changed files, by file and outcome.',
    labelNames: ['file', 'outcome'],
    registers,
  });
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
  };
  const limitsInfo = new Gauge({
    name: 'weir_limits_info',
    help: 'Always 1. Replicas with the same limits and overrides have the same `version`.',
    labelNames: ['version'],
    registers,
  });
  return {
    limitsInForce(version) {
      limitsInfo.reset();
      limitsInfo.set({ version }, 1);
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
