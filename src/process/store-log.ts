import type { Logger } from 'pino';
import type { UncountedReason } from '../store/store.ts';
import type { StoreObserver } from '../store/store-observer.ts';

/** A store that is gone fails to connect twice a second, and a Cluster with one bad node fails and counts by turns. */
const QUIET_MS = 10_000;

/** A refusal lasts until somebody corrects the settings: it is repeated for as long as that takes. */
const REPEAT_MS = 60_000;

/**
 * The store's metrics, and log lines: when the store begins to fail and why, while it goes on to fail, and when it counts
 * again. A store that refuses the gateway's password, certificate or commands is an error of the configuration.
 */
export function observeStore(
  metrics: StoreObserver,
  log: Logger,
  nowMs: () => number = () => performance.now(),
): StoreObserver {
  let isFailing = false;
  let last: { readonly reason: UncountedReason; readonly problem: string | undefined } | undefined;
  /** By route and setting: a server that is connected to again and again is warned about once. */
  const risks = new Map<string, string | undefined>();
  const quietUntilMs = new Map<UncountedReason | undefined, number>();
  const fails = (reason: UncountedReason | undefined, details: object): void => {
    const now = nowMs();
    if (now < (quietUntilMs.get(reason) ?? now)) return;
    quietUntilMs.set(reason, now + (reason === 'auth' ? REPEAT_MS : QUIET_MS));
    isFailing = true;
    if (reason === 'auth') {
      log.error(
        { reason, ...details },
        'the store rejects the gateway: nothing is counted until the settings are corrected',
      );
    } else log.warn({ reason, ...details }, 'the store fails: requests are not counted');
  };
  return {
    uncounted(reason, points, problem) {
      metrics.uncounted(reason, points);
      last = { reason, problem };
      if (reason === 'auth') fails(reason, { problem });
    },
    answeredLate: (points) => metrics.answeredLate(points),
    unanswered: (points) => metrics.unanswered(points),
    deniedFromMemory: () => metrics.deniedFromMemory(),
    called(charges, roundTripUs, uncounted) {
      metrics.called(charges, roundTripUs, uncounted);
      if (!isFailing || uncounted === charges) return;
      isFailing = false;
      for (const [reason, untilMs] of quietUntilMs)
        quietUntilMs.set(reason, Math.min(untilMs, nowMs() + QUIET_MS));
      log.info('the store counts again');
    },
    settled: (outcome, overPoints) => metrics.settled(outcome, overPoints),
    settlementDropped: (reason) => metrics.settlementDropped(reason),
    breakerChanged(route, state) {
      metrics.breakerChanged(route, state);
      if (state === 'open') fails(last?.reason, { route, problem: last?.problem });
    },
    connectionFailed(reason, message) {
      metrics.connectionFailed(reason, message);
      last = { reason, problem: message };
      fails(reason, { problem: message });
    },
    settingChecked(route, setting, risk) {
      metrics.settingChecked(route, setting, risk);
      const key = `${route} ${setting}`;
      if (risk !== undefined && risks.get(key) !== risk)
        log.warn({ route, setting, risk }, 'Redis is not set up for strict limits');
      risks.set(key, risk);
    },
  };
}
