import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Usage } from '../../src/admin/usage/owner-usage.ts';
import { bucketKey, SLOTS_ENDING } from '../../src/store/keys.ts';
import { type SendOptions, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { ownAccounts } from '../fixtures/own-accounts.ts';
import { connectRaw } from '../fixtures/raw.ts';
import { sharedRedisUrl, uniquePrefix, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { STORES } from '../fixtures/stores.ts';
import { handshake, startTunnelUpstream, type TunnelUpstream } from '../fixtures/tunnels.ts';
import { startWeir } from '../fixtures/weir-process.ts';

const SOON = { timeout: 20_000, interval: 20 };
const LIMITS = { limits: { 'in-flight': { per: 'account', concurrent: 3 } } };

/** What an end has to work with. */
interface Rig {
  /** The upstream's side of a request that has just been sent, which holds its slot. */
  arrived(): Promise<ServerResponse>;
  /** Waits until a request holds its slot. */
  held(): Promise<void>;
  /** Sends the start of a request. */
  raw(...lines: readonly string[]): Promise<Socket>;
  get(): Promise<Response>;
  put(path: string, options: SendOptions): Promise<Response>;
  /** A WebSocket, which holds its slot: the client's side of it, and the upstream's. */
  tunnel(): Promise<{ readonly client: Socket; readonly server: Socket }>;
}

interface End {
  /** Of `upstream` in weir.yaml. */
  readonly upstream?: object;
  readonly listen?: object;
  run(rig: Rig): Promise<unknown>;
}

const GET = ['GET /v3/reports HTTP/1.1'];
const UPLOAD = ['POST /v3/reports HTTP/1.1', 'Content-Length: 200000'];
/** As much of an upload as is read before it is sent on. */
const BEGINNING = 'x'.repeat(65_536);

const ENDS: Readonly<Record<string, End>> = {
  'the response has ended': {
    async run({ get, arrived }) {
      const sent = get();
      (await arrived()).end('done');
      expect((await sent).status).toBe(200);
    },
  },
  'the client is gone before the response': {
    async run({ raw, arrived }) {
      const client = await raw(...GET);
      await arrived();
      client.resetAndDestroy();
    },
  },
  'the client is gone within the response': {
    async run({ raw, arrived }) {
      const client = await raw(...GET);
      (await arrived()).write('begun');
      await once(client, 'data');
      client.resetAndDestroy();
    },
  },
  'the client is gone within the beginning of its upload': {
    async run({ raw, held }) {
      const client = await raw(...UPLOAD);
      client.write('abc');
      await held();
      client.destroy();
    },
  },
  'the beginning of the upload stalls': {
    listen: { bodyTimeoutMs: 500 },
    async run({ raw }) {
      const client = await raw(...UPLOAD);
      client.write('abc');
      expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1.1 408 /);
    },
  },
  'the client is gone within its upload': {
    async run({ raw, arrived }) {
      const client = await raw(...UPLOAD);
      client.write(BEGINNING);
      await arrived();
      client.destroy();
    },
  },
  'the upload is too long': {
    listen: { maxBodyBytes: 10 },
    async run({ raw, arrived }) {
      const client = await raw('POST /v3/reports HTTP/1.1', 'Transfer-Encoding: chunked');
      client.write('5\r\nabcde\r\n');
      await arrived();
      client.write('9\r\nfghijklmn\r\n');
      expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1.1 413 /);
    },
  },
  'a header was invalid': {
    async run({ put }) {
      expect((await put('/v3/strict/th_a', { body: '{}' })).status).toBe(422);
    },
  },
  'the body was invalid': {
    async run({ put }) {
      const headers = { 'Idempotency-Key': 'a', 'Content-Type': 'application/json' };
      const sent = { headers, body: '{"name":"too long"}' };
      expect((await put('/v3/strict/th_a', sent)).status).toBe(422);
    },
  },
  'the upstream cannot be reached': {
    upstream: { url: 'http://127.0.0.1:1' },
    async run({ get }) {
      expect((await get()).status).toBe(503);
    },
  },
  'the upstream broke off before the response': {
    async run({ get, arrived }) {
      const sent = get();
      (await arrived()).destroy();
      expect((await sent).status).toBe(503);
    },
  },
  'the upstream broke off within the response': {
    async run({ get, arrived }) {
      const sent = get();
      const response = await arrived();
      response.write('begun');
      const { body } = await sent;
      response.destroy();
      await expect(new Response(body).text()).rejects.toThrow();
    },
  },
  'the upstream refused the upload and reset the connection': {
    async run({ raw, arrived }) {
      const client = await raw(...UPLOAD);
      client.write(BEGINNING);
      const response = await arrived();
      response.writeHead(413, { 'Content-Length': '0' }).end(() => response.socket?.resetAndDestroy());
      client.write(Buffer.alloc(100_000));
      expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1.1 413 /);
    },
  },
  'the response was not HTTP': {
    async run({ get, arrived }) {
      const sent = get();
      (await arrived()).socket?.end('HTTP/1.1 nonsense\r\n\r\n');
      expect((await sent).status).toBe(503);
    },
  },
  'the upstream did not answer in time': {
    upstream: { headersTimeoutMs: 300 },
    async run({ get, arrived }) {
      const sent = get();
      await arrived();
      expect((await sent).status).toBe(503);
    },
  },
  'the upstream stopped within the response': {
    upstream: { bodyTimeoutMs: 300 },
    async run({ get, arrived }) {
      const sent = get();
      (await arrived()).write('begun');
      await expect(sent.then((response) => response.text())).rejects.toThrow();
    },
  },
  'the client closed the WebSocket': {
    async run({ tunnel }) {
      const { client, server } = await tunnel();
      client.end();
      server.end();
    },
  },
  'the client is gone from the WebSocket': {
    async run({ tunnel }) {
      (await tunnel()).client.resetAndDestroy();
    },
  },
  'the upstream broke off the WebSocket': {
    async run({ tunnel }) {
      (await tunnel()).server.resetAndDestroy();
    },
  },
  'the WebSocket was silent for too long': {
    upstream: { tunnelIdleTimeoutMs: 300 },
    async run({ tunnel }) {
      await tunnel();
    },
  },
};

/** A gateway whose upstream answers when the test says. */
interface Stage {
  readonly gateway: TestGateway;
  readonly upstream: TunnelUpstream;
  /** The requests that have reached the upstream. */
  readonly arrivals: readonly ServerResponse[];
}

/** Each end has a caller of its own, because most of them share a gateway. */
const CALLERS = Object.keys(ENDS).map((_, index) => `caller-${index}`);

async function startStage(store: object, { upstream: more, listen = {} }: Partial<End> = {}): Promise<Stage> {
  const arrivals: ServerResponse[] = [];
  const upstream = await startTunnelUpstream((request, response) => {
    request.resume();
    arrivals.push(response);
  });
  const gateway = await startGateway({
    store: { ...store, keyPrefix: uniquePrefix() },
    settings: { upstream: { url: upstream.url, ...more }, listen },
    limits: LIMITS,
    identities: ownAccounts(CALLERS),
    upstream,
  });
  return { gateway, upstream, arrivals };
}

function rigFor(caller: string, { gateway, upstream, arrivals }: Stage) {
  const earlier = arrivals.length;
  const authorized = `Authorization: Bearer ${caller}`;
  const inFlight = async () => {
    const read = await fetch(`${gateway.adminUrl}/usage/accounts/${caller}?wait=no`);
    const { buckets } = (await read.json()) as Usage;
    return buckets.find(({ bucket }) => bucket === 'in-flight')?.inFlight;
  };
  const held = () => expect.poll(inFlight, SOON).toBe(1);
  const rig: Rig = {
    held,
    get: () => gateway.send('GET', '/v3/reports', { token: caller }),
    put: (path, options) => gateway.send('PUT', path, { token: caller, ...options }),
    async raw(...lines) {
      const client = await connectRaw(gateway.url);
      client.on('error', () => {});
      onTestFinished(() => void client.destroy());
      client.write(`${[...lines, 'Host: w', authorized].join('\r\n')}\r\n\r\n`);
      return client;
    },
    async arrived() {
      await vi.waitFor(() => expect(arrivals).toHaveLength(earlier + 1), SOON);
      await held();
      return arrivals[earlier] as ServerResponse;
    },
    async tunnel() {
      const { socket: client, status } = await handshake(gateway.url, '/v3/feed', [authorized]);
      expect(status).toBe(101);
      await held();
      client.resume();
      return { client, server: upstream.tunnels.at(-1) as Socket };
    },
  };
  return { rig, inFlight };
}

describe.each(STORES)('counted by the $kind store, a slot is given back when', ({ store }) => {
  let shared: Stage;
  beforeAll(async () => {
    shared = await startStage(store());
  });
  afterAll(() => shared.gateway.close());

  it.each(Object.entries(ENDS))('%s', async (name, end) => {
    const isUsual = end.upstream === undefined && end.listen === undefined;
    const stage = isUsual ? shared : await startStage(store(), end);
    if (!isUsual) onTestFinished(() => stage.gateway.close());
    const { rig, inFlight } = rigFor(CALLERS[Object.keys(ENDS).indexOf(name)] ?? '', stage);
    await end.run(rig);
    // A replica states what it holds each second, so a slot that it forgot to give back would not expire.
    await expect.poll(inFlight, SOON).toBe(0);
  });
});

it('a replica that ends gives its slots back, and does not leave them to expire', async () => {
  const client = new Redis(sharedRedisUrl());
  onTestFinished(() => client.disconnect());
  const upstream = await startTunnelUpstream(() => {});
  onTestFinished(() => upstream.close());
  const store = uniqueRedisStore();
  const settings = { shutdown: { drainDelaySeconds: 0, graceSeconds: 1 } };
  const weir = await startWeir({ upstreamUrl: upstream.url, store, settings, limits: LIMITS });
  onTestFinished(() => weir.close());
  const headers = { Authorization: 'Bearer service' };
  const asked = fetch(`${weir.url}/v3/reports`, { headers }).catch(() => 'broken off');
  await handshake(weir.url, '/v3/feed', ['Authorization: Bearer service']);
  const key = bucketKey(store.keyPrefix, 'org_1', `in-flight${SLOTS_ENDING}`, 'acct_1');
  // How many slots the lease has: there is one replica.
  const held = async () => (await client.getBuffer(key))?.readUInt32BE(22);
  await expect.poll(held, SOON).toBe(2);
  const ended = once(weir.process, 'exit');
  weir.process.kill('SIGTERM');
  // Without this, the key would expire: it would be gone.
  await expect.poll(held, SOON).toBe(0);
  expect(await asked).toBe('broken off');
  expect((await ended)[0]).toBe(0);
});
