import type { Logger } from 'pino';
import { Finder } from '../../admin/find/finder.ts';
import type { KnownOwners } from '../../admin/find/known-owners.ts';
import type { Fleet } from '../../admin/fleet/fleet.ts';
import type { Refusals } from '../../admin/fleet/refusals.ts';
import type { UsageSources } from '../../admin/usage/owner-usage.ts';
import type { PastCounts } from '../../admin/usage/past-routes.ts';
import type { Why } from '../../admin/why/why.ts';
import type { FactSharing } from '../../facts/fact-listener.ts';
import type { SharedClock } from '../../facts/shared-clock.ts';
import { type AdminServer, type AdminSources, createAdminServer, type Health } from '../../gateway/admin.ts';
import type { Changes } from '../../observe/log/changes.ts';
import type { Metrics } from '../../observe/metrics/metrics.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import type { Configuration } from '../configuration.ts';
import type { RunningTls } from '../port-tls.ts';
import type { KnownIdentities } from './known-identities.ts';
import type { RunningIdentity } from './run-identity.ts';
import type { RunningShare } from './run-share.ts';

/** What the admin port reports on. */
export type Reported = Pick<UsageSources, 'store' | 'buckets'> &
  Health & {
    readonly metrics: Metrics;
    readonly log: Logger;
    readonly changes: Changes;
    readonly tls: Pick<RunningTls, 'admin' | 'ends'>;
    readonly sharing: FactSharing;
    /** The clock of Redis. */
    readonly clock: SharedClock;
    readonly identity: RunningIdentity;
    readonly share: RunningShare;
    /** Its tables have past counts. Undefined if nothing is recorded. */
    readonly journal: { readonly tables?: PastCounts };
  };

interface ServerParts
  extends Pick<AdminSources, 'reports' | 'facts' | 'history'>,
    Pick<UsageSources, 'blocks' | 'activity'>,
    FinderSources {
  readonly known: KnownIdentities;
}

/** The server of the admin port, which does not listen yet. */
export function adminServerOf(
  configuration: Configuration,
  reported: Reported,
  { fleet, reports, facts, history, owners, refusals, why, operations, ...used }: ServerParts,
): AdminServer {
  const { metrics, isReady, tls, changes } = reported;
  return createAdminServer({
    settings: configuration.settings,
    ...{ tls: tls.admin, metrics, fleet, reports, operations, facts, history, why },
    health: { isReady },
    log: changes,
    past: reported.journal.tables,
    finder: finderOf(reported, { owners, fleet, refusals, why, operations }),
    usage: usageOf(configuration, { ...reported, ...used, reports, owners }),
  });
}

interface FinderSources {
  readonly owners: KnownOwners;
  readonly fleet: Fleet;
  readonly refusals: Refusals;
  readonly why: Why;
  /** The operations in force. */
  operations(): readonly ListedOperation[];
}

function finderOf(
  { buckets }: Reported,
  { owners, fleet, refusals, why, operations }: FinderSources,
): Finder {
  return new Finder({
    owners,
    operations,
    limits: () => buckets.limits,
    refused: (requestId) => why.find(requestId),
    refusals: async () => [...(await fleet.refusals()), ...refusals.all()],
  });
}

function usageOf(
  { files }: Configuration,
  {
    known,
    identity,
    ...sources
  }: Omit<UsageSources, 'directory' | 'homeOf' | 'writtenAt'> &
    Reported & { readonly known: KnownIdentities },
): UsageSources {
  return {
    ...sources,
    directory: identity.directory,
    homeOf: (person) => known.homeOf(person),
    writtenAt: (bucket) => files.limits.writtenAt(bucket),
  };
}
