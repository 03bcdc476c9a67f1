import { readSecretFile } from '../../config/settings/notifications-settings.ts';
import type { Settings } from '../../config/settings/settings.ts';
import type { FactSharing } from '../../facts/fact-listener.ts';
import type { GatewayObserver } from '../../observe/gateway-observer.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import type { Deliveries, NotificationObserver } from '../../observe/notify/deliveries.ts';
import { Notifications } from '../../observe/notify/notifications.ts';
import { MemoryOutbox } from '../../store/outbox.ts';

/** Reports limits that are nearly or wholly used, as far as the settings ask for it. */
export async function runNotifications(
  { notifications: settings }: Settings,
  sharing: FactSharing,
  observer: NotificationObserver,
  changes: Changes,
): Promise<{
  /** The observer with what notifications look at; the same one where they are off. */
  observing(observer: GatewayObserver): GatewayObserver;
  close(): Promise<void>;
}> {
  const { store, clock, log } = sharing;
  const deliveries = await openDeliveries(settings, sharing, observer, changes);
  if (deliveries === undefined && !settings.log)
    return { observing: (observed) => observed, async close() {} };
  const notifications = new Notifications({
    claims: store?.openClaims(),
    deliveries,
    observer,
    log,
    isLogged: settings.log,
    nowMs: () => clock.nowMs(),
  });
  return {
    observing: (observed) => ({
      ...observed,
      requestFinished(context, status, totalMs) {
        observed.requestFinished(context, status, totalMs);
        notifications.requestFinished(context);
      },
    }),
    close: () => notifications.close(),
  };
}

/** A webhook takes modules that nothing else needs. */
async function openDeliveries(
  { url, allowPrivate, secret, secretFile }: Settings['notifications'],
  { store, clock, log }: FactSharing,
  observer: NotificationObserver,
  changes: Changes,
): Promise<Deliveries | undefined> {
  if (url === undefined) return undefined;
  const { Deliveries } = await import('../../observe/notify/deliveries.ts');
  const secrets = () => (secretFile === undefined ? [secret ?? ''] : readSecretFile(secretFile));
  const outbox = store?.openOutbox('notices') ?? new MemoryOutbox();
  const nowMs = () => clock.nowMs();
  return new Deliveries({ url, allowPrivate, secrets }, { outbox, observer, log, changes, nowMs });
}
