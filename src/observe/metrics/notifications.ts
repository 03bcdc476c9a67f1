import type { Registry } from 'prom-client';
import type { NotificationObserver } from '../notify/deliveries.ts';
import { counter, readGauge } from './register.ts';

/** Metrics of the notifications about limits. */
export function notificationMetrics(registry: Registry): NotificationObserver {
  const notifications = counter(
    registry,
    'weir_notifications_total',
    'Notifications about limits by outcome of an attempt: delivered, retried later, failed for good, dropped, or not recorded by the store.',
    { outcome: ['delivered', 'retried', 'failed', 'dropped', 'unclaimed'] },
  );
  return {
    notified: (outcome, count = 1) => notifications.inc({ outcome }, count),
    showWaiting(count) {
      const help = 'Notifications that wait for an attempt. Missing without a webhook.';
      readGauge(registry, 'weir_notifications_waiting', help, count);
    },
  };
}
