import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/fixtures/free-port.ts';
import { findProgram, versionOf } from '../lab/machine.ts';
import { startProgram } from '../lab/program.ts';
import { type Contestant, type Running, runningOf, type Scene } from './contestant.ts';
import { cluster, filter, findEnvoy, startEnvoy } from './envoy-proxy.ts';

/** Envoy that asks envoyproxy/ratelimit about every request; the service stands on the gateway's core. */
export const envoy: Contestant = {
  name: 'Envoy + ratelimit',
  limiter: 'Account and Organization, fixed window, in Redis',
  hasLimiter: true,
  find() {
    const found = findEnvoy();
    if ('missing' in found) return found;
    if (findService() !== undefined) return { version: `${found.version}, ratelimit ${rateLimitVersion()}` };
    return {
      missing: 'no ratelimit on PATH (go install github.com/envoyproxy/ratelimit/src/service_cmd@latest)',
    };
  },
  async start(scene) {
    const limiter = await startRateLimit(scene, {
      domain: 'weir',
      descriptors: [
        { key: 'account', rate_limit: perSecond(scene.limit) },
        { key: 'organization', rate_limit: perSecond(scene.limit * 10) },
      ],
    });
    return startEnvoy(scene, limiter, {
      filter: RATE_LIMIT,
      route: {
        rate_limits: [byHeader('account', 'x-service-account'), byHeader('organization', 'x-organization')],
      },
      cluster: cluster('ratelimit', limiter.port, true),
    });
  },
};

const perSecond = (points: number) => ({ unit: 'second', requests_per_unit: points });

const RATE_LIMIT = filter('http.ratelimit', {
  domain: 'weir',
  timeout: '1s',
  rate_limit_service: {
    transport_api_version: 'V3',
    grpc_service: { envoy_grpc: { cluster_name: 'ratelimit' } },
  },
});

function byHeader(key: string, header: string): object {
  return { actions: [{ request_headers: { header_name: header, descriptor_key: key } }] };
}

/** `go install` names the service after its folder. */
function findService(): string | undefined {
  return findProgram('ratelimit', 'RATELIMIT') ?? findProgram('service_cmd');
}

/** The version that Go built into the service; `go` reads it. */
export function rateLimitVersion(): string {
  return versionOf('go', ['version', '-m', findService() ?? ''], /\tmod\t\S+\t(\S+)/);
}

/** Starts envoyproxy/ratelimit with these rules, and variables of its own. */
export async function startRateLimit(
  { cores, folder, redisPort }: Scene,
  rules: object,
  env: Readonly<Record<string, string>> = {},
): Promise<Running> {
  const config = join(folder, 'ratelimit', 'config');
  mkdirSync(config, { recursive: true });
  writeFileSync(join(config, 'weir.yaml'), JSON.stringify(rules));
  const port = await freePort();
  const program = await startProgram({
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
      ...env,
    },
  });
  return runningOf(program, port);
}
