/**
 * Events delivered and list pages of 25 per second, on each database of the tests. Clients and receiver run in the
 * same process, and their work is in its figures; that of a PostgreSQL server is not.
 * `npx tsx bench/platform/platform.ts`
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DatabaseSettings } from '../../platform/src/database/connect.ts';
import { startPlatform } from '../../platform/src/server.ts';
import { ACCT_1, type Client, createClient, trigger } from '../../platform/test/fixtures/client.ts';
import { createDatabase, findPostgres, startPostgres } from '../../platform/test/fixtures/postgres.ts';

const EVENTS = 1000;
const PAGES = 1000;
const CLIENTS = 16;

console.log('| database | events/s | per CPU second | pages/s | per CPU second |');
console.log('|---|---|---|---|---|');
await measure('PGlite', { kind: 'memory' });
const binaries = findPostgres();
if (binaries === undefined) console.log('PostgreSQL is not installed: it is not measured.');
else {
  const server = await startPostgres(binaries);
  await measure('PostgreSQL', { kind: 'postgres', url: await createDatabase(server.url) });
  await server.stop();
}

async function measure(name: string, database: DatabaseSettings): Promise<void> {
  const platform = await startPlatform({
    ...{ host: '127.0.0.1', port: 0, database, seed: true, triggers: true },
    deliveries: { allowPrivate: true },
  });
  const client = createClient(platform.url, ACCT_1);
  const pages = await measurePages(client);
  const events = await measureEvents(client);
  console.log(`| ${name} | ${show(events)} | ${show(pages)} |`);
  await platform.close();
}

interface Rate {
  readonly perSecond: number;
  /** Per second of processor time of this process: what a machine that is busy with other things leaves unchanged. */
  readonly perCpuSecond: number;
}

async function rate(count: number, work: () => Promise<unknown>): Promise<Rate> {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return {
    perSecond: (count * 1000) / (performance.now() - startedMs),
    perCpuSecond: (count * 1_000_000) / (user + system),
  };
}

function show({ perSecond, perCpuSecond }: Rate): string {
  return `${Math.round(perSecond)} | ${Math.round(perCpuSecond)}`;
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
  let arrived = 0;
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(204).end();
      if (++arrived === EVENTS) finish();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const body = { url, subscribedEvents: ['Transfer.Created'] };
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
    await finished;
  });
  receiver.closeAllConnections();
  receiver.close();
  return events;
}
