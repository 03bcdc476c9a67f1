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

/**
 * The snapshot that `page[resultSetId]` names, or without it the page token, however old; otherwise a new one. Throws a 404 if
 * that snapshot has expired (contract section 4.2), and only then a 422 for the filters or the token.
 */
async function snapshotOf(
  { sealer, settings }: Services,
  call: Call,
  db: Database,
  kind: string,
): Promise<Snapshot> {
  const { 'page[resultSetId]': resultSetId, 'page[token]': token } = call.query;
  const ofToken = openPageToken(sealer, call, MATERIALIZED)?.version;
  const now = settings.now();
  const id = resultSetId ?? ofToken;
  const snapshot = id === undefined ? undefined : await findSnapshot(db, call, String(id), now);
  if (token !== undefined && (ofToken === undefined || ofToken !== id))
    throw invalid('page[token]', 'belongs to another query or result set; start again without it');
  return snapshot ?? createSnapshot(db, call, kind, settings.snapshotLifetimeSeconds, now);
}
