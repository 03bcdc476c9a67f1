import type { Logger } from 'pino';
import type { PastCounts } from '../../admin/usage/past-routes.ts';
import type { FactSharing } from '../../facts/fact-listener.ts';
import type { SharedClock } from '../../facts/shared-clock.ts';
import type { Health } from '../../gateway/admin.ts';
import type { Changes } from '../../observe/log/changes.ts';
import type { Metrics } from '../../observe/metrics/metrics.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';
import type { Store } from '../../store/store.ts';
import type { RunningTls } from '../port-tls.ts';
import type { RunningIdentity } from './run-identity.ts';
import type { RunningShare } from './run-share.ts';

/** What the admin port reports on. */
export interface Reported extends Health {
  readonly store: Store;
  readonly buckets: Buckets;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly changes: Changes;
  readonly tls: RunningTls;
  readonly sharing: FactSharing;
  /** The clock of Redis. */
  readonly clock: SharedClock;
  readonly identity: RunningIdentity;
  readonly share: RunningShare;
  /** Its tables have past counts. Undefined if nothing is recorded. */
  readonly journal: { readonly tables?: PastCounts };
}
