import type { DescriptorRules } from '../../domain/limits/descriptors.ts';
import type { EnvoyDependencies } from '../../gateway/decisions/envoy/service.ts';
import type { Configuration } from '../configuration.ts';

/** Envoy's rate limit service; undefined where it is not set. gRPC is not even loaded then. */
export async function runEnvoy(
  { settings, descriptors }: Configuration,
  dependencies: Omit<EnvoyDependencies, 'rules'>,
) {
  const { decisions, store } = settings;
  if (decisions.envoy === undefined) return undefined;
  const { createEnvoyServer } = await import('../../gateway/decisions/envoy/grpc-server.ts');
  let rules = descriptors;
  const { trusted, envoy } = decisions;
  return {
    server: createEnvoyServer(
      { ...dependencies, rules: () => rules },
      trusted,
      envoy.headers,
      store.keyPrefix,
    ),
    replaceRules(changed: DescriptorRules) {
      rules = changed;
    },
  };
}
