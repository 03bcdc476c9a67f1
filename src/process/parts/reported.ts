import type { Logger } from 'pino';
import type { FactSharing } from '../../facts/fact-listener.ts';
import type { SharedClock } from '../../facts/shared-clock.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import type { Metrics } from '../../observe/metrics/metrics.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';
import type { PostgresJournal } from '../../store/journal/postgres.ts';
import type { Store } from '../../store/store.ts';
import type { runTls } from '../port-tls.ts';
import type { runIdentity } from './run-identity.ts';
import type { runShare } from './run-share.ts';

/** What the admin port reports on. */
export interface Reported {
  readonly store: Store;
  readonly buckets: Buckets;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly changes: Changes;
  readonly tls: ReturnType<typeof runTls>;
  readonly sharing: FactSharing;
  /** The clock of Redis. */
  readonly clock: SharedClock;
  readonly identity: ReturnType<typeof runIdentity>;
  readonly share: ReturnType<typeof runShare>;
  /** Its tables have past counts. Undefined if nothing is recorded. */
  readonly journal: { readonly tables?: PostgresJournal };
  /** False once shutdown has begun. */
  isReady(): boolean;
}
