import type { Handler, Handlers } from '../http/routes.ts';
import { readPage } from '../lists/page.ts';
import { resourceList } from '../lists/resource-list.ts';
import { ofAccount } from '../lists/scope.ts';
import { createSnapshot, findSnapshot, snapshotList } from '../search/snapshots.ts';
import { ok, type Services } from './services.ts';

/** `/v3/search/…`: live results without a count, or a snapshot with one (contract section 4.2). */
export function searchHandlers(services: Services): Handlers {
  return {
    searchPayees: searchOf(services, 'Payee'),
    searchPayables: searchOf(services, 'Payable'),
    searchInvoices: searchOf(services, 'Invoice'),
  };
}

function searchOf({ sealer, settings }: Services, kind: string): Handler {
  return async (call, db) => {
    const { 'page[mode]': mode, 'page[resultSetId]': resultSetId } = call.query;
    if (mode !== 'materialized' && resultSetId === undefined) {
      return ok(await readPage(sealer, call, resourceList(db, call, kind, ofAccount, true)));
    }
    const now = settings.now();
    const snapshot =
      resultSetId === undefined
        ? await createSnapshot(db, call, kind, settings.snapshotLifetimeSeconds, now)
        : await findSnapshot(db, call, String(resultSetId), now);
    const rules = { onStaleToken: 'reject', boundTo: snapshot.id } as const;
    const page = await readPage(sealer, call, snapshotList(db, snapshot), rules);
    return ok({ ...page, pagination: { ...page.pagination, resultSetId: snapshot.id } });
  };
}
