import { networkInterfaces } from 'node:os';
import { Fleet } from '../../admin/fleet/fleet.ts';
import { OwnerReports } from '../../admin/fleet/owner-reports.ts';
import { Recorder } from '../../admin/fleet/recorder.ts';
import { StoreHealth } from '../../admin/fleet/store-health.ts';
import type { Settings } from '../../config/settings/settings.ts';
import { Ignored } from '../../facts/ignored.ts';
import type { Collected } from './collect.ts';
import type { Reported } from './reported.ts';

/** Records what this replica does and publishes it to those that share its store, where there are any. */
export function runFleet(
  settings: Settings['store'],
  reported: Reported,
  { activity, blocks, history, refusals, requests, talkers }: Collected,
) {
  const { store, buckets, metrics, changes, clock, log, isReady } = reported;
  const shared = reported.sharing.store;
  const { replica } = store.slots;
  const nowMs = () => clock.nowMs();
  const liveLimits = () => buckets.live.count(nowMs());
  metrics.showInFlight(store.slots);
  metrics.showLiveLimits(liveLimits, () => buckets.live.inForce(nowMs())[0]?.untilMs);
  const ignored = new Ignored('summary', metrics, log);
  const storeHealth = new StoreHealth({
    store,
    keyPrefix: settings.keyPrefix,
    nowMs,
    measured(isAnswering, hasMissed) {
      metrics.storeMeasured(isAnswering);
      history.storeMeasured(isAnswering, hasMissed);
    },
  });
  const recorder = new Recorder({
    metrics,
    changes,
    refusals,
    storeHealth,
    storeKind: settings.kind,
    share: reported.share.replicas,
    certificateEnds: reported.tls.ends,
    isReady,
    liveLimits,
    clock,
  });
  const board = shared?.openBoard('top', replica);
  const fleet = new Fleet(replica, { talkers, blocks, pulse: () => recorder.pulse(), nowMs, ignored }, board);
  const reports = new OwnerReports(
    replica,
    { activity, refusals, requests, nowMs, ignored },
    shared && { asked: shared.openBoard('asked', replica), reports: shared.openBoard('owners', replica) },
  );
  recorder.start();
  return {
    fleet,
    reports,
    /** Publishes the URL of the admin port, which listens on this host. */
    announce(url: string, host: string) {
      recorder.adminUrl = reachableUrl(url, host);
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
