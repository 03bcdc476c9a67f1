import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, test } from 'vitest';
import type { DatabaseSettings } from '../src/database/connect.ts';
import { ACCT_1, createClient, trigger } from './fixtures/client.ts';
import { lastingDatabases, type OpenTestDatabase, QUICK_TO_OPEN } from './fixtures/databases.ts';
import { startReceiver } from './fixtures/receiver.ts';

const PROGRAM = fileURLToPath(new URL('./fixtures/platform-process.mjs', import.meta.url));
const EVENTS = 20;

describe.each(lastingDatabases)('on $name', ({ open }) => {
  const running: ChildProcess[] = [];
  let database: OpenTestDatabase | undefined;
  afterEach(async () => {
    for (const child of running) child.kill('SIGKILL');
    await database?.close();
  });

  async function start(settings: DatabaseSettings): Promise<[ChildProcess, string]> {
    const options = {
      host: '127.0.0.1',
      port: 0,
      database: settings,
      seed: true,
      triggers: true,
      settlementSeconds: 0,
      sweepSeconds: 1,
      deliveries: { timeoutMs: 1000, retryBaseSeconds: 1, allowPrivate: true, concurrency: 4 },
    };
    const child = fork(PROGRAM, [JSON.stringify(options)], { execArgv: QUICK_TO_OPEN });
    running.push(child);
    const [url] = (await once(child, 'message')) as [string];
    return [child, url];
  }

  test('events that a killed process had recorded are delivered, and its operations end, after the next start', async () => {
    database = await open();
    const [first, firstUrl] = await start(database.settings);
    const client = createClient(firstUrl, ACCT_1);
    const receiver = await startReceiver();
    // Never answers in time: every delivery is under way or waiting when the process dies.
    receiver.answer = 0;
    const body = { url: receiver.url, subscribedEvents: ['Transfer.Created', 'Payable.Paid'] };
    const subscribed = await client.send('POST', '/v3/platform/webhook-subscriptions', body);
    receiver.secrets.push(subscribed.body.secret);
    const ids = await Promise.all(Array.from({ length: EVENTS }, () => trigger(client, 'Transfer.Created')));
    const { body: operation } = await client.send('POST', '/v3/payments/payables/payable_1001/open');
    await receiver.until('Transfer.Created', 1);
    first.kill('SIGKILL');
    await once(first, 'exit');
    receiver.answer = 204;
    receiver.received.length = 0;
    const [, secondUrl] = await start(database.settings);
    const again = createClient(secondUrl, ACCT_1);
    await again.poll(`/v3/platform/operations/${operation.id}`, ({ status }) => status === 'Completed');
    await receiver.until('Payable.Paid');
    await receiver.untilAbout(ids);
    await receiver.close();
  });
});
