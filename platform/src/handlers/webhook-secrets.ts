import type { Handlers } from '../http/routes.ts';
import { ok, type Services } from './services.ts';
import { lockOwnedSubscription, newSecret, subscriptionBody } from './subscriptions.ts';

/** One day for deploying the new secret. */
const DEFAULT_OVERLAP_SECONDS = 24 * 3600;

/** `/v3/platform/webhook-subscriptions/{subscriptionId}/rotate-secret`: both secrets sign until the overlap ends. */
export function webhookSecretHandlers({ settings }: Services): Handlers {
  return {
    async rotateWebhookSecret(call, db) {
      const { id, secret: previousSecret } = await lockOwnedSubscription(db, call);
      const { overlapSeconds = DEFAULT_OVERLAP_SECONDS } = (call.body ?? {}) as { overlapSeconds?: number };
      const now = settings.now();
      const secret = newSecret();
      const rotated = await db
        .updateTable('subscriptions')
        .set({
          secret,
          previous_secret: previousSecret,
          updated_at: now,
          previous_secret_until: new Date(now.getTime() + overlapSeconds * 1000),
        })
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow();
      return ok({ ...subscriptionBody(rotated, settings.deliveries.pauseAfterSeconds), secret });
    },
  };
}
