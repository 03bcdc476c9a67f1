import { collectDefaultMetrics, Registry } from 'prom-client';
import type { KubernetesObserver } from '../../config/kubernetes/follow.ts';
import type { ReloadObserver } from '../../config/watch.ts';
import type { GatewayObserver } from '../../gateway/dependencies.ts';
import type { IdentityObserver } from '../../identity/observer.ts';
import type { StoreObserver } from '../../store/observer.ts';
import { identityMetrics } from './identity.ts';
import { kubernetesMetrics } from './kubernetes.ts';
import { reloadMetrics } from './reload.ts';
import { requestMetrics } from './requests.ts';
import { storeMetrics } from './store.ts';

/** All metrics. Labels never contain an Account, a token or a path. */
export interface Metrics
  extends GatewayObserver,
    StoreObserver,
    IdentityObserver,
    ReloadObserver,
    KubernetesObserver {
  /** All metrics in the Prometheus text format. */
  text(): Promise<string>;
  readonly contentType: string;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return {
    ...requestMetrics(registry),
    ...storeMetrics(registry),
    ...identityMetrics(registry),
    ...reloadMetrics(registry),
    ...kubernetesMetrics(registry),
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}
