import { freePort } from '../../test/fixtures/free-port.ts';
import type { Contestant } from './contestant.ts';
import { cluster, filter, findEnvoy, startEnvoy } from './envoy-proxy.ts';
import { weir } from './weir.ts';

/** Envoy that asks Weir about every request over ext_authz; both are on the gateway's core. */
export const envoyWeir: Contestant = {
  name: 'Envoy + Weir (decisions)',
  limiter: 'Account and Organization, sliding window, in Redis',
  hasLimiter: true,
  find: findEnvoy,
  async start(scene) {
    const decisionsPort = await freePort();
    const gateway = await weir('redis', { settings: { decisions: { port: decisionsPort } } }).start(scene);
    return startEnvoy(scene, gateway, { filter: EXT_AUTHZ, cluster: cluster('weir', decisionsPort, false) });
  },
};

const exactly = (...names: readonly string[]) => ({ patterns: names.map((exact) => ({ exact })) });

/** As in docs/recipes/proxies/envoy.md. */
const EXT_AUTHZ = filter('http.ext_authz', {
  http_service: {
    server_uri: { uri: 'http://weir', cluster: 'weir', timeout: '1s' },
    path_prefix: '/ext-authz',
    authorization_response: {
      allowed_upstream_headers: exactly(
        'x-account-id',
        'x-organization-id',
        'x-principal-id',
        'x-principal-type',
        'x-request-id',
      ),
      allowed_client_headers_on_success: exactly(
        'ratelimit',
        'ratelimit-policy',
        'service-ratelimit-mode',
        'x-request-id',
      ),
    },
  },
  allowed_headers: { patterns: [{ safe_regex: { regex: '.*' } }] },
  disallowed_headers: exactly('connection', 'upgrade'),
  status_on_error: { code: 'ServiceUnavailable' },
});
