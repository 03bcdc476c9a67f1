import { dump, load, loadAll } from 'js-yaml';
import { expect, it, onTestFinished } from 'vitest';
import { sendPlain } from '../../fixtures/decisions.ts';
import { envoyFile, startEnvoy } from '../../fixtures/envoy.ts';
import { ENVOY } from '../../fixtures/proxy-recipes.ts';
import { recipe, replaced } from '../../fixtures/recipes.ts';
import { describeProxy } from '../describe-proxy.ts';

/** What a recipe patches into the configuration that a gateway makes for its Envoy. */
interface Patches {
  readonly filter: Filter;
  readonly rateLimits: unknown;
  /** Undefined where the gateway makes the cluster of Weir's Service. */
  readonly cluster: object | undefined;
}

interface Filter {
  readonly name: string;
  readonly typed_config: {
    readonly rate_limit_service: {
      readonly grpc_service: { readonly envoy_grpc: { readonly cluster_name: string } };
    };
  };
}

describeProxy(ENVOY, () => {
  it.each([
    ['istio', 'istio-envoy-filter.yaml', 20],
    ['kuadrant', 'kuadrant.yaml', 5],
    ['envoy-gateway', 'envoy-patch-policy.yaml', 20],
  ])('%s: with the filter, rate limits and cluster of its recipe, Weir limits', async (page, file, limit) => {
    const text = recipe(`descriptors/${page}`)[file] ?? '';
    const { url, weir } = await startPatched(patchesIn(loadAll(text)));
    const send = () => sendPlain(url, 'GET', '/items', { 'X-Client': page });
    const { status, headers } = await send();
    expect([status, headers['ratelimit-policy']]).toEqual([200, expect.stringContaining(`q=${limit};`)]);
    await weir.close();
    const uncounted = await send();
    expect([uncounted.status, uncounted.headers['ratelimit-policy']]).toEqual([200, undefined]);
  });

  it('with failure_mode_deny, a client gets a 500 while Weir is away', async () => {
    const text = recipe('descriptors/istio')['istio-envoy-filter.yaml'] ?? '';
    const refusing = replaced(text, {
      'timeout: 0.1s': 'timeout: 0.1s\n            failure_mode_deny: true',
    });
    const { url, weir } = await startPatched(patchesIn(loadAll(refusing)));
    await weir.close();
    expect((await sendPlain(url, 'GET', '/items')).status).toBe(500);
  });
});

/** The values in an EnvoyFilter or an EnvoyPatchPolicy, by their form. */
function patchesIn(documents: readonly unknown[]): Patches {
  const values = documents.flatMap(valuesIn);
  const find = (name: string) => values.find((value) => name in value);
  const filter = find('typed_config') as Filter | undefined;
  const host = find('rate_limits') as { readonly rate_limits: unknown } | undefined;
  const rateLimits = host?.rate_limits ?? values.find(Array.isArray);
  if (filter === undefined || rateLimits === undefined)
    throw new Error('the recipe has no filter or no rate limits');
  return { filter, rateLimits, cluster: find('load_assignment') };
}

function valuesIn(part: unknown): readonly object[] {
  if (typeof part !== 'object' || part === null) return [];
  return Object.entries(part).flatMap(([name, inner]) =>
    name === 'value' && typeof inner === 'object' ? [inner] : valuesIn(inner),
  );
}

/** Starts Envoy with the file of its recipe, whose own parts are replaced by the patches. */
async function startPatched({ filter, rateLimits, cluster }: Patches) {
  const configuration = load(envoyFile()) as Configuration;
  const { listeners, clusters } = configuration.static_resources;
  const [service, weirCluster] = clusters;
  const manager = listeners[0]?.filter_chains[0]?.filters[0]?.typed_config;
  const host = manager?.route_config.virtual_hosts[0];
  if (manager === undefined || host === undefined) throw new Error('the recipe of Envoy has another form');
  manager.http_filters[0] = filter;
  host.rate_limits = rateLimits;
  const { cluster_name: name } = filter.typed_config.rate_limit_service.grpc_service.envoy_grpc;
  configuration.static_resources.clusters = [service, cluster ?? { ...weirCluster, name }];
  const file = dump(configuration, { flowLevel: 0, lineWidth: -1, noRefs: true });
  // Weir's Service in a cluster of the recipe.
  const envoy = await startEnvoy(
    file.replace('address: weir-decisions.edge.svc.cluster.local', 'address: 127.0.0.1'),
  );
  onTestFinished(() => envoy.close());
  return envoy;
}

interface Configuration {
  readonly static_resources: {
    readonly listeners: readonly {
      readonly filter_chains: readonly { readonly filters: readonly { readonly typed_config: Manager }[] }[];
    }[];
    clusters: readonly (object | undefined)[];
  };
}

interface Manager {
  readonly http_filters: unknown[];
  readonly route_config: { readonly virtual_hosts: readonly { rate_limits: unknown }[] };
}
