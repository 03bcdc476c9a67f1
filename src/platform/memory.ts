import { randomUUID } from 'node:crypto';
import { eventTypes } from './events/event-types.ts';
import type { Call } from './http/call.ts';
import { invalid, notFound } from './http/problems.ts';
import type { Handlers } from './http/routes.ts';
import { createTokenSealer, type TokenSealer } from './lists/token.ts';

interface Row {
  readonly id: string;
  readonly accountId: string;
  status: string;
  readonly createdAt: string;
  readonly [field: string]: unknown;
}

const TOKEN_LIFETIME_SECONDS = 900;

/** The contract's operations over demo data in memory. */
export function memoryHandlers(tokenKey: Buffer): Handlers {
  const payees = seed('payee', ['Activated', 'Invited', 'Activated', 'Deactivated'], 60);
  const payables = seed('payable', ['Draft'], 20);
  const taxForms = seed('taxform', ['Draft'], 5);
  const operations = new Map<string, Row>();
  const sealer = createTokenSealer(tokenKey, TOKEN_LIFETIME_SECONDS, Date.now);

  const own = (rows: Iterable<Row>, call: Call) =>
    [...rows].filter((row) => row.accountId === call.caller.accountId);
  const page = (rows: readonly Row[], call: Call) => pageOf(sealer, rows, call);
  const find = (rows: Iterable<Row>, what: string, id: string | undefined, call: Call) => {
    const row = own(rows, call).find((candidate) => candidate.id === id);
    if (!row) throw notFound(what, String(id));
    return row;
  };
  const accept = (type: string, call: Call) => {
    const createdAt = new Date().toISOString();
    const events = { createdAt, completedAt: createdAt };
    const row = {
      id: `op_${randomUUID()}`,
      accountId: call.caller.accountId,
      type,
      status: 'Completed',
      createdAt,
      events,
    };
    operations.set(row.id, row);
    return { status: 202, body: { ...row, status: 'Pending', events: { createdAt } } };
  };
  return {
    listWebhookEventTypes: () => ({
      status: 200,
      body: { data: eventTypes, pagination: { nextPageToken: '', totalSize: eventTypes.length } },
    }),
    getOperation: (call) => ({
      status: 200,
      body: find(operations.values(), 'operation', call.params.operationId, call),
    }),
    createSession: (call) => ({ status: 201, body: newSession(call) }),
    bulkDismissNotifications: (call) => accept('Notification.BulkDismiss', call),
    listMfaFactors: (call) =>
      page([{ id: 'mfa_1', accountId: '', status: 'Activated', type: 'Totp', createdAt: SEEDED_AT }], call),
    listPayees: (call) => page(own(payees, call), call),
    openPayable: (call) => {
      find(payables, 'payable', call.params.payableId, call).status = 'Open';
      return accept('Payable.Open', call);
    },
    submitTaxForm: (call) => {
      const form = find(taxForms, 'tax form', call.params.taxFormId, call);
      form.status = 'Submitted';
      return { status: 200, body: form };
    },
  };
}

function pageOf(sealer: TokenSealer, rows: readonly Row[], call: Call) {
  const { 'page[size]': size = 25, 'page[token]': token, ...filters } = call.query;
  const query = JSON.stringify([call.operationId, call.caller.accountId, filters]);
  const matching = rows.filter(
    (row) =>
      (filters['filter[status][eq]'] ?? row.status) === row.status &&
      Date.parse(row.createdAt) >= Date.parse(String(filters['filter[createdAt][gte]'] ?? 0)),
  );
  const after = token === undefined ? [''] : sealer.open(String(token), query);
  if (!after) throw invalid('page[token]', 'has expired or belongs to another query');
  const rest = matching.filter((row) => row.id > String(after[0]));
  const data = rest.slice(0, Number(size));
  const last = data.at(-1);
  const nextPageToken = last && rest.length > data.length ? sealer.seal([last.id], query) : '';
  return { status: 200, body: { data, pagination: { nextPageToken, totalSize: matching.length } } };
}

const SEEDED_AT = '2026-01-05T09:00:00.000Z';

function seed(prefix: string, statuses: readonly string[], count: number): Row[] {
  return ['acct_1', 'acct_2', 'acct_3'].flatMap((accountId, account) =>
    Array.from({ length: count }, (_, index) => ({
      id: `${prefix}_${account + 1}${String(index + 1).padStart(3, '0')}`,
      accountId,
      status: statuses[index % statuses.length] ?? 'Draft',
      createdAt: new Date(Date.parse(SEEDED_AT) + index * 3_600_000).toISOString(),
    })),
  );
}

function newSession(call: Call) {
  const { ttlSeconds = 900 } = (call.body ?? {}) as { ttlSeconds?: number };
  const expiresAt = new Date(Date.now() + ttlSeconds * 1000).toISOString();
  return { id: `session_${randomUUID()}`, status: 'Activated', accountId: call.caller.accountId, expiresAt };
}
