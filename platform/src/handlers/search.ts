import type { Database } from '../database/schema.ts';
import type { Call } from '../http/call.ts';
import { invalid } from '../http/problems.ts';
import type { Handler, Handlers } from '../http/routes.ts';
import { openPageToken, readPage } from '../lists/page.ts';
import { resourceList } from '../lists/resource-list.ts';
import { createSnapshot, findSnapshot, type Snapshot, snapshotList } from '../lists/search-snapshots.ts';
import { ok, type Services } from './services.ts';

/** `/v3/search/…`: live results without a count, or a snapshot with one (contract section 4.2). */
export function searchHandlers(services: Services): Handlers {
  return {
    searchPayees: searchOf(services, 'Payee'),
    searchPayables: searchOf(services, 'Payable'),
    searchInvoices: searchOf(services, 'Invoice'),
  };
}

/** Keeps tokens of a snapshot and of the live search apart. */
const MATERIALIZED = { boundTo: 'materialized' };

function searchOf(services: Services, kind: string): Handler {
  const { sealer } = services;
  return async (call, db) => {
    const { 'page[mode]': mode, 'page[resultSetId]': resultSetId } = call.query;
    if (mode !== 'materialized' && resultSetId === undefined) {
      return ok(await readPage(sealer, call, resourceList(db, call, kind, true)));
    }
    const snapshot = await snapshotOf(services, call, db, kind);
    const rules = { ...MATERIALIZED, version: snapshot.id };
    const page = await readPage(sealer, call, snapshotList(db, snapshot), rules);
    return ok({ ...page, pagination: { ...page.pagination, resultSetId: snapshot.id } });
  };
}

/** The snapshot that the page token or `page[resultSetId]` names, or a new one. */
async function snapshotOf(
  { sealer, settings }: Services,
  call: Call,
  db: Database,
  kind: string,
): Promise<Snapshot> {
  const resultSetId = call.query['page[resultSetId]'];
  // Open the token first, so that an invalid one does not leave a snapshot behind.
  const ofToken = openPageToken(sealer, call, MATERIALIZED)?.version;
  if (ofToken !== undefined && resultSetId !== undefined && ofToken !== resultSetId) {
    throw invalid('page[token]', 'belongs to another result set');
  }
  const id = ofToken ?? resultSetId;
  const now = settings.now();
  return id === undefined
    ? createSnapshot(db, call, kind, settings.snapshotLifetimeSeconds, now)
    : findSnapshot(db, call, String(id), now);
}
