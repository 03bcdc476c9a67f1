import { findCatalogResource } from '../catalog/catalog.ts';
import type { Scope } from '../catalog/resource.ts';
import type { Database } from '../database/schema.ts';
import { queueEvents, shortId } from '../deliveries/fan-out.ts';

export interface Recipient {
  readonly scope: Scope;
  readonly id: string;
}

/** Something that happened, with the members that subscribers receive (contract section 2.3). */
export interface Occurrence {
  /** `{Resource}.{Event}`, a published type. */
  readonly type: string;
  readonly at: Date;
  readonly data: { readonly id: string; readonly status: string; readonly externalId?: string };
  /** Sent to recipients other than Accounts, which could not know it otherwise. */
  readonly accountId?: string;
  readonly context?: Readonly<Record<string, string>>;
  readonly parent?: { readonly type: string; readonly id: string };
  readonly confirmation?: Readonly<Record<string, string>>;
  /** All candidates. Those whose scope cannot receive the type are left out. */
  readonly recipients: readonly Recipient[];
}

/**
 * Writes one event per recipient with its deliveries in `db`'s transaction, so that they exist if and only if the change does.
 * Events of one occurrence share an `occurrenceId` (contract section 6.2).
 */
export async function writeOccurrence(db: Database, occurrence: Occurrence): Promise<void> {
  const { type, at, recipients, accountId, ...content } = occurrence;
  const scopes = findCatalogResource(type.slice(0, type.indexOf('.')))?.scopes ?? [];
  const occurrenceId = `occ_${shortId()}`;
  const rows = recipients
    .filter((recipient) => scopes.includes(recipient.scope))
    .map((recipient) => {
      const id = `evt_${shortId()}`;
      const envelope = {
        id,
        type,
        occurrenceId,
        timestamp: at.toISOString(),
        recipient,
        ...(accountId !== undefined && recipient.scope !== 'Account' && { accountId }),
      };
      return {
        id,
        occurrence_id: null,
        type,
        scope_type: recipient.scope,
        scope_id: recipient.id,
        resource_id: content.data.id,
        payload: JSON.stringify({ ...envelope, ...content }),
        occurred_at: at,
        relayed_at: at,
      };
    });
  if (rows.length === 0) return;
  await db.insertInto('events').values(rows).execute();
  await queueEvents(db, rows, at);
}
