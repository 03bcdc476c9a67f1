import { recordTransition } from '../events/transitions.ts';
import type { OperationOutcome } from './operation.ts';
import type { OperationWork } from './run.ts';

export const BULK_DISMISS = 'Notification.BulkDismiss';

interface Item {
  readonly id: string;
  readonly code: string;
  readonly detail: string;
}

/**
 * Dismisses notifications of the requesting Person one by one. Some may fail while others succeed. For a ServiceAccount all fail, because
 * it has none.
 */
export const bulkDismissWork: OperationWork = async (db, operation, now) => {
  const ids = [...new Set(operation.input.notificationIds as string[])];
  const notifications = await db
    .selectFrom('resources')
    .selectAll()
    .where('kind', '=', 'Notification')
    .where('person_id', '=', operation.person_id)
    .where('id', 'in', ids)
    .forUpdate()
    .execute();
  const byId = new Map(notifications.map((notification) => [notification.id, notification]));
  const failed: Item[] = [];
  for (const id of ids) {
    const notification = byId.get(id);
    if (!notification)
      failed.push({ id, code: 'ResourceNotFound', detail: `There is no notification "${id}".` });
    else if (notification.status !== 'Dismissed')
      await recordTransition(db, notification, { part: 'Dismissed', at: now });
  }
  return outcomeOf(ids.length, { succeeded: ids.filter((id) => byId.has(id)), failed });
};

function outcomeOf(total: number, result: { succeeded: string[]; failed: Item[] }): OperationOutcome {
  if (result.failed.length === 0) return { status: 'Completed', result };
  if (result.failed.length < total) return { status: 'PartiallyCompleted', result };
  const [first] = result.failed;
  return { status: 'Failed', result, error: { code: first?.code ?? '', detail: 'Every item failed.' } };
}
