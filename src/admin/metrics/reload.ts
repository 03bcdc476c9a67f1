import { Counter, Gauge, type Registry } from 'prom-client';
import type { ReloadedFile, ReloadObserver } from '../../config/watch.ts';

/** Whether the files in force are the newest ones. */
export function reloadMetrics(registry: Registry): ReloadObserver {
  const registers = [registry];
  const reloads = new Counter({
    name: 'weir_reloads_total',
    help: 'Changes of a file that were taken (success) or refused (failure) while running.',
    labelNames: ['file', 'outcome'],
    registers,
  });
  const gauge = (file: ReloadedFile) => {
    const one = new Gauge({
      name: `weir_${file}_last_reload_successful`,
      help: `1 when the ${file} in force are the newest; 0 when a newer version was refused.`,
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
    help: 'Always 1; `version` is the same at every replica that has the same limits and overrides in force.',
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
