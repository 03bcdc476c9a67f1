import { networkInterfaces } from 'node:os';
import type { Logger } from 'pino';
import { Fleet } from '../../admin/fleet/fleet.ts';
import { OwnerReports } from '../../admin/fleet/owner-reports.ts';
import { type PulseSources, Recorder } from '../../admin/fleet/recorder.ts';
import { StoreHealth } from '../../admin/fleet/store-health.ts';
import type { Settings } from '../../config/settings/settings.ts';
import type { Blocks } from '../../facts/blocks.ts';
import { Ignored } from '../../facts/ignored.ts';
import type { Metrics } from '../../observe/metrics/metrics.ts';
import type { Activity } from '../../observe/usage/activity.ts';
import type { Talkers } from '../../observe/usage/talkers.ts';
import type { SharedStore } from '../../store/shared-store.ts';
import type { Store } from '../../store/store.ts';

/** Opens a port, and returns its URL. */
type Listen = (address: { readonly host: string; readonly port: number }) => Promise<string>;

interface RunningFleet {
  readonly fleet: Fleet;
  readonly reports: OwnerReports;
  /** Opens the admin port, and publishes its URL. */
  announced(listen: Listen): Listen;
  close(): Promise<void>;
}

/** What a replica reports about, and the store that is asked whether it answers. */
interface FleetSources extends Omit<PulseSources, 'storeKind' | 'storeHealth'> {
  readonly metrics: Metrics;
  readonly store: Store;
  readonly blocks: Blocks;
  readonly activity: Activity;
  /** Called after each look whether the store answers. */
  storeMeasured(isAnswering: boolean, hasMissed: boolean): void;
  readonly settings: Pick<Settings['store'], 'kind' | 'keyPrefix'>;
}

/** Records what this replica does and publishes it to those that share its store, where there are any. */
export function runFleet(
  shared: SharedStore | undefined,
  talkers: Talkers,
  { store, settings, blocks, activity, storeMeasured, ...sources }: FleetSources,
  log: Logger,
): RunningFleet {
  const { replica } = store.slots;
  const board = shared?.openBoard('top', replica);
  const ignored = new Ignored('summary', sources.metrics, log);
  const storeHealth = new StoreHealth({
    store,
    keyPrefix: settings.keyPrefix,
    nowMs: () => sources.clock.nowMs(),
    measured(isAnswering, hasMissed) {
      sources.metrics.storeMeasured(isAnswering);
      storeMeasured(isAnswering, hasMissed);
    },
  });
  const recorder = new Recorder({ ...sources, storeKind: settings.kind, storeHealth });
  const fleet = new Fleet(
    replica,
    { talkers, blocks, pulse: () => recorder.pulse(), nowMs: () => sources.clock.nowMs(), ignored },
    board,
  );
  const { refusals } = sources;
  const reports = new OwnerReports(
    replica,
    { activity, refusals, nowMs: () => sources.clock.nowMs(), ignored },
    shared && { asked: shared.openBoard('asked', replica), reports: shared.openBoard('owners', replica) },
  );
  recorder.start();
  return {
    fleet,
    reports,
    announced: (listen) => async (address) => {
      const url = await listen(address);
      recorder.adminUrl = reachableUrl(url, address.host);
      return url;
    },
    async close() {
      recorder.stop();
      await Promise.all([fleet.close(), reports.close()]);
    },
  };
}

const EVERY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** The URL by which other machines reach the port: of a port on every address, the first that is not this machine's alone. */
function reachableUrl(url: string, host: string): string {
  if (!EVERY_ADDRESS.has(host)) return new URL(url).origin;
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const { address, family } =
    all.find(({ internal, family }) => !internal && family === 'IPv4') ?? all[0] ?? {};
  const { protocol, port } = new URL(url);
  return address === undefined ? url : `${protocol}//${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
