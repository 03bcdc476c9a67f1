import { Counter, Gauge, type Registry } from 'prom-client';
import type { NotificationObserver } from '../notify/deliveries.ts';

/** Metrics of the notifications about limits. */
export function notificationMetrics(registry: Registry): NotificationObserver {
  const registers = [registry];
  const notifications = new Counter({
    name: 'weir_notifications_total',
    help: 'Notifications about limits by outcome of an attempt: delivered, retried later, failed for good, dropped, or not recorded by the store.',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of ['delivered', 'retried', 'failed', 'dropped', 'unclaimed'])
    notifications.inc({ outcome }, 0);
  return {
    notified: (outcome, count = 1) => notifications.inc({ outcome }, count),
    showWaiting(count) {
      new Gauge({
        name: 'weir_notifications_waiting',
        help: 'Notifications that wait for an attempt. Missing without a webhook.',
        registers,
        collect() {
          this.set(count());
        },
      });
    },
  };
}
