import { Gauge, type Registry } from 'prom-client';
import type { KubernetesObserver } from '../../config/kubernetes/follow.ts';

/** Metrics of the watches on mounted ConfigMaps. */
export function kubernetesMetrics(registry: Registry): KubernetesObserver {
  const connected = new Gauge({
    name: 'weir_kubernetes_watch_connected',
    help: '1 while the object is watched through the API server, 0 while only its mounted files are polled.',
    labelNames: ['object'],
    registers: [registry],
  });
  return {
    watchConnected: (name, isConnected) => connected.set({ object: name }, isConnected ? 1 : 0),
  };
}
