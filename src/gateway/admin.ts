import type { Logger } from 'pino';
import { adminGuard, answerTheRest, answerUnroutable } from '../admin/access.ts';
import { addFactRoutes, type FactApi } from '../admin/facts/fact-api.ts';
import { addLimitRoutes } from '../admin/facts/shown-limits.ts';
import { addFindRoute, type Finder, type PricedOperation } from '../admin/find/finder.ts';
import type { Fleet } from '../admin/fleet/fleet.ts';
import { addTopRoute } from '../admin/fleet/fleet.ts';
import type { OwnerReports } from '../admin/fleet/owner-reports.ts';
import type { ChangeHistory } from '../admin/history/change-history.ts';
import { addChangesRoutes } from '../admin/history/changes-route.ts';
import type { UsageSources } from '../admin/usage/owner-usage.ts';
import { addExportRoute } from '../admin/usage/past-routes.ts';
import { addUsageRoutes } from '../admin/usage/usage-routes.ts';
import type { Why } from '../admin/why/why-refused.ts';
import { addWhyRoute } from '../admin/why/why-route.ts';
import type { Settings } from '../config/settings/settings.ts';
import { FleetFeed } from '../console/feed.ts';
import { addFleetRoutes } from '../console/fleet-routes.ts';
import { addConsolePage } from '../console/page.ts';
import { turnOf } from '../http/server/node/node-exchange.ts';
import { closeWithin, serveFastify } from '../http/server/server.ts';
import { type PortTls, servedUrl } from '../http/server/tls.ts';
import { refuseUnread } from '../http/server/unreadable.ts';
import type { Changes } from '../observe/log/noticed-changes.ts';
import { Exposition } from '../observe/metrics/exposition.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import type { PostgresJournal } from '../store/journal/postgres.ts';
import type { Address } from './dependencies.ts';

/** What the admin port serves. */
export interface AdminSources {
  /** This port has the same time-outs as the port for clients. */
  readonly settings: Settings;
  /** Undefined to serve HTTP. */
  readonly tls: PortTls | undefined;
  readonly metrics: Metrics;
  readonly usage: UsageSources;
  /** Where past counts are read; undefined if nothing is recorded. */
  readonly past: PostgresJournal | undefined;
  readonly fleet: Fleet;
  readonly reports: OwnerReports;
  /** Live limits, blocks and revocations. */
  readonly facts: readonly FactApi[];
  readonly finder: Finder;
  readonly history: ChangeHistory;
  readonly why: Why;
  readonly changes: Changes;
  readonly log: Logger;
  /** The operations in force. */
  operations(): readonly PricedOperation[];
  /** Whether this replica is ready, which does not depend on the store. False once shutdown has begun. */
  isReady(): boolean;
}

/** The gateway's own requests have ended when this port closes: what is left is short, or has no end. */
const GRACE_MS = 1_000;

/** Probes, scrapes, commands and open consoles need few connections. */
const MAX_CONNECTIONS = 256;

/** The longest id in a path. */
const MAX_ID_CHARACTERS = 1_000;

/**
 * The admin server. It listens on a separate port that clients cannot reach. `/metrics`, `/livez`, `/readyz` and the
 * files of the console are open; `adminGuard` protects everything else.
 */
export function createAdminServer({
  settings: { admin, listen, baseUrl },
  tls,
  metrics,
  isReady,
  usage,
  past,
  fleet,
  reports,
  facts,
  finder,
  history,
  why,
  changes,
  log,
  operations,
}: AdminSources) {
  const unread = { baseUrl, lines: '' };
  const server = serveFastify(
    { limits: listen, limit: { max: MAX_CONNECTIONS, beyond: 'displace' }, unread, tls },
    { routerOptions: { maxParamLength: MAX_ID_CHARACTERS }, frameworkErrors: answerUnroutable },
  );
  const { app } = server;
  app.addHook('onRequest', (request, reply, done) => {
    const { connection, request: read } = turnOf(request.raw);
    if (read.brokenBy === undefined) {
      done();
      return;
    }
    reply.hijack();
    refuseUnread(connection, unread, read.brokenBy);
  });
  const exposition = new Exposition(() => metrics.text());
  app.get('/metrics', async (_request, reply) => {
    reply.type(metrics.contentType);
    return exposition.text();
  });
  app.get('/livez', async () => ({ status: 'alive' }));
  app.get('/readyz', async (_request, reply) => {
    const ready = isReady();
    reply.code(ready ? 200 : 503);
    return { status: ready ? 'ready' : 'draining' };
  });
  answerTheRest(app, log);
  addConsolePage(app);
  app.register(async (guarded) => {
    guarded.addHook('onRequest', adminGuard(admin));
    addFleetRoutes(guarded, new FleetFeed(fleet, reports, () => history.losses()));
    addLimitRoutes(guarded, () => usage.buckets.limits, operations);
    addFactRoutes(guarded, facts);
    addFindRoute(guarded, finder);
    addWhyRoute(guarded, why);
    addChangesRoutes(guarded, history, changes, () => usage.buckets.nowMs);
    addTopRoute(guarded, fleet);
    addUsageRoutes(guarded, { ...usage, past });
    addExportRoute(guarded, past);
  });
  return {
    /** Returns its URL. */
    listen: async ({ host, port }: Address) => servedUrl(await app.listen({ host, port }), tls),
    close: () => closeWithin(server, GRACE_MS),
  };
}
