import type { Selectable } from 'kysely';
import type { Database, Tables } from '../database/schema.ts';
import type { Call } from '../http/call.ts';
import { readFilters, toTime } from '../lists/filters.ts';
import type { ListSource } from '../lists/page.ts';

/** Every write of the acting Account. The list has no total, because it only grows. */
export function auditLogList(db: Database, call: Call): ListSource<Selectable<Tables['audit_logs']>> {
  // The only filter that openapi.yaml declares here is `filter[createdAt][gte]`.
  const [from] = readFilters(call).map(toTime);
  return {
    fetch: (afterKey, limit) =>
      db
        .selectFrom('audit_logs')
        .selectAll()
        .where('account_id', '=', call.caller.accountId)
        .where('sequence', '>', afterKey)
        .$if(from !== undefined, (query) => query.where('created_at', '>=', new Date(from ?? 0)))
        .orderBy('sequence')
        .limit(limit)
        .execute(),
    keyOf: (row) => String(row.sequence),
    toBody: (row) => ({
      id: row.id,
      operation: row.operation,
      target: row.target,
      principalId: row.principal_id,
      createdAt: row.created_at.toISOString(),
    }),
  };
}
