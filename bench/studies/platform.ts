import type { DatabaseSettings } from '../../platform/src/database/connect.ts';
import { startPlatform } from '../../platform/src/server.ts';
import { ACCT_1, type Client, createClient, trigger } from '../../platform/test/fixtures/client.ts';
import { createDatabase, findPostgres, startPostgres } from '../../platform/test/fixtures/postgres.ts';
import type { Bench } from '../lab/bench.ts';
import { startReceiver } from '../load/receiver.ts';
import { table } from '../report/section.ts';

const EVENTS = 1000;
const PAGES = 1000;
const CLIENTS = 16;

/**
 * Clients and receiver run in this process, and their work is in its figures. The work of a PostgreSQL server is not. Figures per second of
 * processor time do not depend on what else the machine does.
 */
export async function measurePlatform(bench: Bench): Promise<readonly string[]> {
  const rows = [await measure('PGlite', { kind: 'memory' })];
  const binaries = findPostgres();
  if (binaries === undefined) bench.say('PostgreSQL is not installed: it is not measured.');
  else {
    const server = bench.endWith(await startPostgres(binaries));
    rows.push(await measure('PostgreSQL', { kind: 'postgres', url: await createDatabase(server.url) }));
  }
  return ['', ...table(['database', 'events/s', 'per CPU second', 'pages/s', 'per CPU second'], rows)];
}

async function measure(name: string, database: DatabaseSettings): Promise<readonly (string | number)[]> {
  const platform = await startPlatform({
    host: '127.0.0.1',
    port: 0,
    database,
    seed: true,
    triggers: true,
    deliveries: { allowPrivate: true },
  });
  const client = createClient(platform.url, ACCT_1);
  const pages = await measurePages(client);
  const events = await measureEvents(client);
  await platform.close();
  return [name, ...events, ...pages];
}

/** Per second, and per second of processor time of this process. */
type Rate = readonly [perSecond: number, perCpuSecond: number];

async function rate(count: number, work: () => Promise<unknown>): Promise<Rate> {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  const perSecond = (count * 1000) / (performance.now() - startedMs);
  return [Math.round(perSecond), Math.round((count * 1_000_000) / (user + system))];
}

/** Pages of 25 payees, with their count, asked for by several clients at once. */
async function measurePages(client: Client): Promise<Rate> {
  const ask = async (count: number) => {
    for (let i = 0; i < count; i++) await client.get('/v3/payments/payees');
  };
  await ask(50);
  return rate(PAGES, () => Promise.all(Array.from({ length: CLIENTS }, () => ask(PAGES / CLIENTS))));
}

/** Events that waited for a paused subscription, from its resumption to the last arrival. */
async function measureEvents(client: Client): Promise<Rate> {
  const receiver = await startReceiver();
  const body = { url: receiver.url, subscribedEvents: ['Transfer.Created'] };
  const created = await client.send('POST', '/v3/platform/webhook-subscriptions', body);
  const path = `/v3/platform/webhook-subscriptions/${created.body.id}`;
  await client.send('PATCH', path, { status: 'Paused' });
  for (let i = 0; i < EVENTS; i += CLIENTS) {
    const batch = Math.min(CLIENTS, EVENTS - i);
    await Promise.all(Array.from({ length: batch }, () => trigger(client, 'Transfer.Created')));
  }
  let held = 0;
  while (held < EVENTS) held = (await client.walk(`${path}/deliveries?page[size]=100`)).length;
  const events = await rate(EVENTS, async () => {
    await client.send('PATCH', path, { status: 'Active' });
    await receiver.received(EVENTS);
  });
  receiver.stop();
  return events;
}
