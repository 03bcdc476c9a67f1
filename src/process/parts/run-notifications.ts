import type { Logger } from 'pino';
import { readSecretFile } from '../../config/settings/notifications.ts';
import type { Settings } from '../../config/settings/settings.ts';
import type { SharedClock } from '../../facts/shared-clock.ts';
import type { GatewayObserver } from '../../observe/gateway-observer.ts';
import type { Changes } from '../../observe/log/changes.ts';
import type { Deliveries, NotificationObserver } from '../../observe/notify/deliveries.ts';
import { Notifications } from '../../observe/notify/notifications.ts';
import { MemoryOutbox } from '../../store/outbox.ts';
import type { SharedStore } from '../../store/shared-store.ts';

interface RunningNotifications {
  /** The observer with what notifications look at; the same one where they are off. */
  observing(observer: GatewayObserver): GatewayObserver;
  close(): Promise<void>;
}

interface NotificationSources {
  /** Undefined where no other replica shares the store. */
  readonly shared: SharedStore | undefined;
  readonly metrics: NotificationObserver;
  readonly clock: SharedClock;
  readonly log: Logger;
  readonly changes: Changes;
}

/** Reports limits that are nearly or wholly used, as far as the settings ask for it. */
export async function runNotifications(
  { notifications: settings }: Settings,
  sources: NotificationSources,
): Promise<RunningNotifications> {
  const { shared, metrics, clock, log } = sources;
  const deliveries = await openDeliveries(settings, sources);
  if (deliveries === undefined && !settings.log)
    return { observing: (observer) => observer, async close() {} };
  const notifications = new Notifications({
    claims: shared?.openClaims(),
    ...{ deliveries, observer: metrics, log, isLogged: settings.log },
    nowMs: () => clock.nowMs(),
  });
  return {
    observing: (observer) => ({
      ...observer,
      requestFinished(context, status, totalMs) {
        observer.requestFinished(context, status, totalMs);
        notifications.requestFinished(context);
      },
    }),
    close: () => notifications.close(),
  };
}

/** A webhook takes modules that nothing else needs. */
async function openDeliveries(
  { url, allowPrivate, secret, secretFile }: Settings['notifications'],
  { shared, metrics: observer, clock, log, changes }: NotificationSources,
): Promise<Deliveries | undefined> {
  if (url === undefined) return undefined;
  const { Deliveries } = await import('../../observe/notify/deliveries.ts');
  const secrets = () => (secretFile === undefined ? [secret ?? ''] : readSecretFile(secretFile));
  const outbox = shared?.openOutbox('notices') ?? new MemoryOutbox();
  const nowMs = () => clock.nowMs();
  return new Deliveries({ url, allowPrivate, secrets }, { outbox, observer, log, changes, nowMs });
}
