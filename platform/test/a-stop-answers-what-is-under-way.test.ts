import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type OpenDatabase, openDatabase } from '../src/database/connect.ts';
import { buildApp } from '../src/http/app.ts';
import { loadContract } from '../src/http/contract.ts';
import { settleOptions } from '../src/settings.ts';
import { ACCT_1 } from './fixtures/client.ts';
import { type OpenTestDatabase, quickest } from './fixtures/databases.ts';

const PATH = '/v3/platform/sessions';

let files: OpenTestDatabase;
let database: OpenDatabase;
let app: FastifyInstance;
/** Ends the write under way. */
let finish: () => void;
let begun: Promise<void>;

beforeEach(async () => {
  files = await quickest.open();
  database = await openDatabase(files.settings);
  let begin = () => {};
  begun = new Promise((resolve) => {
    begin = resolve;
  });
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const handler = async () => {
    begin();
    await finished;
    return { status: 201, body: { id: 'session_1' } };
  };
  const handlers = Object.fromEntries(loadContract().map(({ operationId }) => [operationId, handler]));
  app = buildApp(settleOptions({ host: '', port: 0 }), database.db, handlers, () => {});
  await app.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(async () => {
  await app.close();
  await database.close();
  await files.close();
});

const port = () => (app.server.address() as AddressInfo).port;

test('a write under way is answered when the server closes, and its connection ends with the answer', async () => {
  const answer = fetch(`http://127.0.0.1:${port()}${PATH}`, { method: 'POST', headers: ACCT_1 });
  await begun;
  const closed = app.close();
  await expect.poll(() => app.server.listening).toBe(false);
  finish();
  const { status, headers } = await answer;
  expect([status, headers.get('connection')]).toEqual([201, 'close']);
  await closed;
});

test('a client that never sends the rest of its request does not hold the stop', async () => {
  const socket = connect(port(), '127.0.0.1');
  const head = `POST ${PATH} HTTP/1.1\r\nHost: platform\r\nContent-Type: application/json\r\nContent-Length: 9\r\n`;
  const accepted = once(app.server, 'request');
  socket.write(`${head}\r\n{`);
  await accepted;
  await app.close();
  socket.destroy();
});
