import Fastify, {
  type FastifyInstance,
  type FastifyServerFactoryHandler,
  type RawServerDefault,
} from 'fastify';
import type { Settings } from '../config/settings/settings.ts';
import type { PortTls } from '../gateway/tls/server.ts';
import { adminGuard } from './access.ts';
import { FleetFeed } from './console/feed.ts';
import { addConsolePage } from './console/page.ts';
import { addFleetRoutes } from './console/routes.ts';
import type { Refusals } from './fleet/refusals.ts';
import type { LiveLimitActions } from './limits/live.ts';
import { addLiveLimitRoutes } from './limits/routes.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { RevocationActions } from './revocations/actions.ts';
import { addRevocationRoutes } from './revocations/routes.ts';
import type { Fleet } from './top/fleet.ts';
import { addTopRoute } from './top/route.ts';
import { addUsageRoutes } from './usage/routes.ts';
import type { UsageSources } from './usage/usage.ts';

/** Readiness of the process. It does not depend on the store. */
export interface Health {
  /** False once shutdown has begun. */
  isReady(): boolean;
}

/** What the admin port serves. */
export interface AdminSources {
  readonly settings: Settings['admin'];
  /** Undefined to serve HTTP. */
  readonly tls: PortTls | undefined;
  readonly metrics: Metrics;
  readonly health: Health;
  readonly usage: UsageSources;
  readonly fleet: Fleet;
  readonly refusals: Refusals;
  readonly limits: LiveLimitActions;
  readonly revocations: RevocationActions;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;

/** The longest id in a path. */
const MAX_ID_CHARACTERS = 1_000;

/**
 * The admin server. It listens on a separate port that clients cannot reach. `/metrics`, `/livez`, `/readyz` and the
 * files of the console are open; `adminGuard` protects everything else.
 */
export function createAdminServer({
  settings,
  tls,
  metrics,
  health,
  usage,
  fleet,
  refusals,
  limits,
  revocations,
}: AdminSources): FastifyInstance {
  const app = Fastify({
    logger: false,
    routerOptions: { maxParamLength: MAX_ID_CHARACTERS },
    ...(tls && {
      serverFactory: (serve: FastifyServerFactoryHandler) =>
        tls.createServer({}, HANDSHAKE_TIMEOUT_MS, serve) as RawServerDefault,
    }),
  });
  app.get('/metrics', async (_request, reply) => {
    reply.type(metrics.contentType);
    return metrics.text();
  });
  app.get('/livez', async () => ({ status: 'alive' }));
  app.get('/readyz', async (_request, reply) => {
    const isReady = health.isReady();
    reply.code(isReady ? 200 : 503);
    return { status: isReady ? 'ready' : 'draining' };
  });
  addConsolePage(app);
  app.register(async (guarded) => {
    guarded.addHook('onRequest', adminGuard(settings));
    addFleetRoutes(guarded, new FleetFeed(fleet, refusals));
    addLiveLimitRoutes(guarded, limits);
    addRevocationRoutes(guarded, revocations);
    addTopRoute(guarded, fleet);
    addUsageRoutes(guarded, usage);
  });
  return app;
}
