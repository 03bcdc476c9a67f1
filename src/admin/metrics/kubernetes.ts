import { Gauge, type Registry } from 'prom-client';
import type { KubernetesObserver } from '../../config/kubernetes/follow.ts';

/** Whether changes of mounted ConfigMaps arrive at once, or at the pace of the kubelet. */
export function kubernetesMetrics(registry: Registry): KubernetesObserver {
  const connected = new Gauge({
    name: 'weir_kubernetes_watch_connected',
    help: '1 while the object is watched through the API server; 0 while only its mounted files are followed.',
    labelNames: ['object'],
    registers: [registry],
  });
  return {
    watchConnected: (name, isConnected) => connected.set({ object: name }, isConnected ? 1 : 0),
  };
}
