import { createHash, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ExpressionBuilder } from 'kysely';
import type { Database, Tables } from '../database/schema.ts';
import type { Call } from './call.ts';
import { invalid } from './problems.ts';
import type { Answer, Handler } from './routes.ts';

/** After this time a key can be used again. */
const KEY_LIFETIME_MS = 24 * 3600 * 1000;

/**
 * Runs a write as one transaction with its effects, its audit record and the response stored for its Idempotency-Key.
 * A second request of the same principal for the same Account with the same key and body gets the first response; with a
 * different body it gets a 422. A refused write changes nothing and leaves its key unused.
 */
export function runWrite(db: Database, call: Call, handler: Handler, now: Date): Promise<Answer> {
  return db.transaction().execute(async (trx) => {
    const key = call.idempotencyKey;
    const earlier = key === undefined ? undefined : await claimKey(trx, call, key, now);
    if (earlier) return earlier;
    const answer = await handler(call, trx);
    if (key !== undefined) {
      const body = answer.body === undefined ? null : JSON.stringify(answer.body);
      await trx
        .updateTable('idempotency_keys')
        .set({ status: answer.status, body })
        .where(ownedBy(call, key))
        .execute();
    }
    await trx
      .insertInto('audit_logs')
      .values({
        id: `audit_${randomUUID()}`,
        account_id: call.caller.accountId,
        principal_id: call.caller.principalId,
        operation: call.operationId,
        target: targetOf(call, answer),
        created_at: now,
      })
      .execute();
    return answer;
  });
}

/** The ids in the path, or the id of what the write created. */
function targetOf({ params }: Call, { body }: Answer): string {
  const ids = Object.values(params);
  if (ids.length > 0) return ids.join('/');
  const { id, resource } = (body ?? {}) as { id?: string; resource?: { id: string } };
  return id ?? resource?.id ?? '';
}

/** Claims the key, after waiting for any request that holds it. Returns the stored response if there is one. */
async function claimKey(db: Database, call: Call, key: string, now: Date): Promise<Answer | undefined> {
  const oldest = new Date(now.getTime() - KEY_LIFETIME_MS);
  await db
    .deleteFrom('idempotency_keys')
    .where(ownedBy(call, key))
    .where('created_at', '<', oldest)
    .execute();
  const { body: sent = null } = call;
  const requestWith = (body: unknown) => [call.operationId, call.params, call.query, body];
  // Earlier versions, which may run beside this one, write and compare this one alone.
  const fingerprint = digestOf(requestWith(sent));
  // `{}` says the same as no body.
  const unordered = digestOf(inOrder(requestWith(isDeepStrictEqual(sent, {}) ? null : sent)));
  const type = call.caller.personId === undefined ? 'ServiceAccount' : 'Person';
  const claimed = await db
    .insertInto('idempotency_keys')
    .values({
      account_id: call.caller.accountId,
      principal_id: call.caller.principalId,
      principal_type: type,
      key,
      fingerprint,
      unordered_fingerprint: unordered,
      status: null,
      body: null,
      created_at: now,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('key')
    .executeTakeFirst();
  if (claimed) return undefined;
  const earlier = await db
    .selectFrom('idempotency_keys')
    .select(['fingerprint', 'unordered_fingerprint', 'principal_type', 'status', 'body'])
    .where(ownedBy(call, key))
    .executeTakeFirstOrThrow();
  // Earlier versions did not write the type.
  const isOther = earlier.principal_type !== null && earlier.principal_type !== type;
  const isSame = earlier.fingerprint === fingerprint || earlier.unordered_fingerprint === unordered;
  if (isOther || !isSame) throw invalid('Idempotency-Key', 'was used with another request before');
  const body = earlier.body === null ? {} : { body: earlier.body };
  return { status: earlier.status ?? 200, ...body, isReplayed: true };
}

function digestOf(request: unknown): string {
  return createHash('sha256').update(JSON.stringify(request)).digest('base64');
}

/** The value with the members of each object in one order, because JSON gives their order no meaning (RFC 8259 section 4). */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, inOrder(member)] as const);
  return Object.fromEntries(members.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Keys belong to one principal, because a stored response may contain a secret. */
function ownedBy({ caller }: Call, key: string) {
  return (where: ExpressionBuilder<Tables, 'idempotency_keys'>) =>
    where.and({ account_id: caller.accountId, principal_id: caller.principalId, key });
}
