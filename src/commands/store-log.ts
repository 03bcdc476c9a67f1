import type { Logger } from 'pino';
import type { StoreObserver } from '../store/observer.ts';

/** A store that is gone fails to connect every second, and a limping Cluster fails and answers by turns. */
const QUIET_MS = 10_000;

/** The store's metrics, and a log line when it begins to fail, and one when it counts again. */
export function observeStore(metrics: StoreObserver, log: Logger): StoreObserver {
  let isFailing = false;
  let quietUntilMs = 0;
  const fails = (details: object): void => {
    const nowMs = performance.now();
    if (isFailing && nowMs < quietUntilMs) return;
    isFailing = true;
    quietUntilMs = nowMs + QUIET_MS;
    log.warn(details, 'the store fails: requests go on uncounted');
  };
  return {
    uncounted: (reason, points) => metrics.uncounted(reason, points),
    answeredLate: (points) => metrics.answeredLate(points),
    deniedFromMemory: () => metrics.deniedFromMemory(),
    called(decisions, roundTripUs) {
      metrics.called(decisions, roundTripUs);
      if (!isFailing) return;
      isFailing = false;
      log.info('the store counts');
    },
    breakerChanged(route, state) {
      metrics.breakerChanged(route, state);
      if (state === 'open') fails({ route });
    },
    connectionFailed(reason, message) {
      metrics.connectionFailed(reason, message);
      fails({ reason, problem: message });
    },
  };
}
