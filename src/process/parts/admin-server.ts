import type { FactApi } from '../../admin/facts/fact-api.ts';
import { Finder } from '../../admin/find/finder.ts';
import { createAdminServer } from '../../gateway/admin.ts';
import type { Configuration } from '../configuration.ts';
import type { Collected } from './collect.ts';
import type { Reported } from './reported.ts';
import type { runFleet } from './run-fleet.ts';

/** The server of the admin port, which does not listen yet. */
export function adminServerOf(
  { settings, files }: Configuration,
  { buckets, store, metrics, isReady, tls, changes, log, identity, journal }: Reported,
  { activity, refusals, why, history, known, blocks, owners, operations }: Collected,
  { fleet, reports }: ReturnType<typeof runFleet>,
  facts: readonly FactApi[],
) {
  return createAdminServer({
    settings,
    tls: tls.admin,
    metrics,
    isReady,
    fleet,
    reports,
    facts,
    operations,
    why,
    history: history.history,
    changes,
    log,
    past: journal.tables,
    finder: new Finder({
      owners,
      operations,
      limits: () => buckets.limits,
      refused: (requestId) => why.find(requestId),
      refusals: async () => [...(await fleet.refusals()), ...refusals.all()],
      requests: (requestId) => reports.requestsWith(requestId),
    }),
    usage: {
      buckets,
      store,
      reports,
      blocks,
      owners,
      activity,
      directory: identity.directory,
      homeOf: (principal) => known.principalOf(principal),
      writtenAt: (bucket) => files.limits.writtenAt(bucket),
    },
  });
}
