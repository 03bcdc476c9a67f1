import { newId } from '../catalog/catalog.ts';
import type { Database } from '../database/schema.ts';
import { lockResource, recordTransition } from '../events/transitions.ts';
import type { Handlers } from '../http/routes.ts';
import { findOwnedResource, insertResource, resourceBody, updateFields } from '../resources/resources.ts';
import { ok, pathId, type Services } from './services.ts';

interface VaultFileBody {
  readonly name?: string;
  readonly externalId?: string;
}

/** `/v3/compliance/…` */
export function complianceHandlers(services: Services): Handlers {
  const { now } = services.settings;
  return {
    async createVaultFile(call, db) {
      const { name, externalId = null } = call.body as VaultFileBody;
      const at = now();
      const file = await insertResource(db, {
        id: newId('VaultFile'),
        kind: 'VaultFile',
        status: 'Stored',
        account_id: call.caller.accountId,
        external_id: externalId,
        fields: { name },
        at,
      });
      return { status: 201, body: resourceBody(await recordTransition(db, file, { part: 'Created', at })) };
    },
    async updateVaultFile(call, db) {
      const file = await findOwnedResource(db, call.caller, 'VaultFile', pathId(call, 'vaultFileId'));
      const { name, externalId } = call.body as VaultFileBody;
      if (name !== undefined) await updateFields(db, file.id, { name });
      if (externalId !== undefined) await setExternalId(db, file.id, externalId);
      return ok(resourceBody(await recordTransition(db, file, { part: 'Updated', at: now() })));
    },
    async submitTaxForm(call, db) {
      const { id } = await findOwnedResource(db, call.caller, 'TaxForm', pathId(call, 'taxFormId'));
      const form = await lockResource(db, id);
      // A second submission has no effect. Tax form events are reserved (contract section 6.5), so none is written.
      if (form.status === 'Submitted') return ok(resourceBody(form));
      return ok(resourceBody(await recordTransition(db, form, { part: 'Submitted', at: now() })));
    },
  };
}

async function setExternalId(db: Database, id: string, externalId: string): Promise<void> {
  await db.updateTable('resources').set({ external_id: externalId }).where('id', '=', id).execute();
}
