import { randomUUID } from 'node:crypto';
import { recordTransition } from '../events/transitions.ts';
import type { Handlers } from '../http/routes.ts';
import { ofAccount } from '../lists/scope.ts';
import { findOwnedResource, insertResource, resourceBody } from '../resources/resources.ts';
import { listOf, ok, pathId, readOf, type Services } from './services.ts';

interface VaultFileBody {
  readonly name?: string;
  readonly externalId?: string;
}

/** `/v3/compliance/…` */
export function complianceHandlers(services: Services): Handlers {
  const { now } = services.settings;
  return {
    listVaultFiles: listOf(services, 'VaultFile', ofAccount),
    getVaultFile: readOf('VaultFile', 'vaultFileId'),
    async createVaultFile(call, db) {
      const { name, externalId = null } = call.body as VaultFileBody;
      const at = now();
      const file = await insertResource(db, {
        id: `file_${randomUUID()}`,
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
      const { name = file.fields.name, externalId = file.external_id } = call.body as VaultFileBody;
      const fields = { ...file.fields, name };
      await db
        .updateTable('resources')
        .set({ fields: JSON.stringify(fields), external_id: externalId })
        .where('id', '=', file.id)
        .execute();
      return ok(resourceBody(await recordTransition(db, file, { part: 'Updated', at: now() })));
    },
    async submitTaxForm(call, db) {
      const form = await findOwnedResource(db, call.caller, 'TaxForm', pathId(call, 'taxFormId'));
      // Submitting twice files once; tax form events are reserved (contract section 6.5), so none is written.
      if (form.status === 'Submitted') return ok(resourceBody(form));
      return ok(resourceBody(await recordTransition(db, form, { part: 'Submitted', at: now() })));
    },
  };
}
