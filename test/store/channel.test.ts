import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { RemoteStoreSettings } from '../../src/store/redis/connection/redis-options.ts';
import { sharedByRedis } from '../../src/store/redis/shared/shared-by-redis.ts';
import type { Channel, ChannelListener, MessageRecord } from '../../src/store/shared-store.ts';
import { startRawServer } from '../fixtures/raw-server.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { startSentinel } from '../fixtures/redis-sentinel.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';

const DEADLINE_MS = 5000;

interface Topology {
  readonly kind: string;
  start(): Promise<{ settings: RemoteStoreSettings; stop(): Promise<void> }>;
}

const TOPOLOGIES: readonly Topology[] = [
  {
    kind: 'one Redis',
    start: async () => ({
      settings: { kind: 'redis', url: sharedRedisUrl(), deadlineMs: DEADLINE_MS },
      stop: async () => {},
    }),
  },
  {
    kind: 'one Redis, spoken to in RESP2',
    start: async () => ({
      settings: { kind: 'redis', url: sharedRedisUrl(), deadlineMs: DEADLINE_MS, protocol: 2 },
      stop: async () => {},
    }),
  },
  {
    kind: 'Sentinel',
    async start() {
      const { sentinelUrls, name, stop } = await startSentinel();
      return { settings: { kind: 'sentinel', sentinels: sentinelUrls, name, deadlineMs: DEADLINE_MS }, stop };
    },
  },
  {
    kind: 'Cluster',
    async start() {
      const { urls, stop } = await startRedisCluster();
      return { settings: { kind: 'cluster', nodes: urls, deadlineMs: DEADLINE_MS }, stop };
    },
  },
];

const TOPIC = 'revocations';

function shareWith(settings: RemoteStoreSettings, keyPrefix: string) {
  return sharedByRedis({ ...settings, keyPrefix }, () => {});
}

function subscribe(settings: RemoteStoreSettings, keyPrefix: string, listener: ChannelListener): Channel {
  return shareWith(settings, keyPrefix).subscribe(TOPIC, listener);
}

function openRecord<T>(
  settings: RemoteStoreSettings,
  keyPrefix: string,
  use: (record: MessageRecord) => Promise<T>,
): Promise<T> {
  return shareWith(settings, keyPrefix).withRecord(TOPIC, use);
}

async function publish(
  settings: RemoteStoreSettings,
  keyPrefix: string,
  text: string,
  untilMs: number,
): Promise<void> {
  await openRecord(settings, keyPrefix, (record) => record.publish([{ text, untilMs }]));
}

const SOON = { timeout: 60_000, interval: 20 };

describe.each(TOPOLOGIES)('the channel of $kind', ({ start }) => {
  const started = start();
  const open: Channel[] = [];
  afterAll(async () => {
    for (const channel of open) channel.close();
    await (await started).stop();
  });

  async function subscriber(name: string): Promise<{ received: Set<string>; channel: Channel }> {
    const received = new Set<string>();
    const { settings } = await started;
    const channel = subscribe(settings, name, { message: (text) => received.add(text), connected() {} });
    open.push(channel);
    return { received, channel };
  }

  it('delivers a message to every subscriber, and to later ones until it expires', async () => {
    const { settings } = await started;
    const name = uniquePrefix();
    const subscribers = await Promise.all([subscriber(name), subscriber(name)]);
    await Promise.all(subscribers.map(({ channel }) => channel.subscribed));
    await publish(settings, name, 'lasting', Date.now() + 60_000);
    await publish(settings, name, 'over at once', Date.now() - 1);
    for (const { received } of subscribers) {
      await vi.waitFor(() => expect([...received].sort()).toEqual(['lasting', 'over at once']), SOON);
    }
    const late = await subscriber(name);
    await late.channel.subscribed;
    expect([...late.received]).toEqual(['lasting']);
  });

  it('writes again what the record has lost', async () => {
    const { settings } = await started;
    const name = uniquePrefix();
    const known = { text: 'known', untilMs: Date.now() + 60_000 };
    const channel = subscribe(settings, name, {
      message() {},
      connected() {},
      missingFrom: (record) => (record.has(known.text) ? [] : [known]),
    });
    open.push(channel);
    await vi.waitFor(async () => {
      expect(await openRecord(settings, name, (record) => record.read())).toEqual(['known']);
    }, SOON);
  });

  it('does not deliver messages of another channel', async () => {
    const { settings } = await started;
    const name = uniquePrefix();
    const { received, channel } = await subscriber(name);
    await channel.subscribed;
    await publish(settings, uniquePrefix(), 'not for us', Date.now() + 60_000);
    await publish(settings, name, 'for us', Date.now() + 60_000);
    await vi.waitFor(() => expect([...received]).toEqual(['for us']), SOON);
  });
});

it('finds the record of a Cluster through any one of its nodes, however late it connects to the others', async () => {
  const { urls, clients, stop } = await startRedisCluster();
  onTestFinished(stop);
  for (const url of urls) {
    const others = clients.filter((_, index) => urls[index] !== url);
    await Promise.all(others.map((client) => client.client('PAUSE', 300)));
    const settings = { kind: 'cluster', nodes: [url], deadlineMs: DEADLINE_MS } as const;
    expect(await openRecord(settings, uniquePrefix(), (record) => record.read())).toEqual([]);
  }
});

it('a Redis that refuses the subscription is reported with its answer, and once it accepts, everything arrives', async () => {
  const redis = await startRedisServer({ args: ['--requirepass', 'right'] });
  const problems: (string | undefined)[] = [];
  let isConnected: boolean | undefined;
  const channel = subscribe({ kind: 'redis', url: redis.url, deadlineMs: DEADLINE_MS }, 'refused', {
    message() {},
    connected(is, problem) {
      isConnected = is;
      if (!is) problems.push(problem);
    },
  });
  try {
    await vi.waitFor(() => expect(problems).toEqual([expect.stringContaining('NOAUTH')]), SOON);
    const client = new Redis(redis.url, { password: 'right' });
    await client.config('SET', 'requirepass', '');
    client.disconnect();
    await vi.waitFor(() => expect(isConnected).toBe(true), SOON);
  } finally {
    channel.close();
    await redis.stop();
  }
});

const ANSWERS: Readonly<Record<string, string>> = {
  ping: '+PONG\r\n',
  // The time, and no message.
  eval: '*5\r\n:1\r\n:0\r\n:0\r\n$0\r\n\r\n:0\r\n',
  evalsha: '*5\r\n:1\r\n:0\r\n:0\r\n$0\r\n\r\n:0\r\n',
  subscribe: '*3\r\n$9\r\nsubscribe\r\n$4\r\nname\r\n:1\r\n',
};

const answerTo = (command: string) => ANSWERS[command] ?? '-ERR no such command\r\n';

function commandsOf(chunk: Buffer): readonly string[] {
  return [...chunk.toString('latin1').matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)].map(
    ([, command = '']) => command,
  );
}

it('a connection that breaks as it subscribes again costs nothing but another attempt', async () => {
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', onUnhandled);
  let subscriptions = 0;
  const server = await startRawServer((socket) => {
    socket.on('data', (chunk) => {
      const commands = commandsOf(chunk);
      const isSubscribing = commands.includes('subscribe');
      if (isSubscribing) subscriptions += 1;
      // The first subscription succeeds, so that the client has something to subscribe to again.
      if (!isSubscribing || subscriptions === 1) socket.write(commands.map(answerTo).join(''));
      if (isSubscribing) socket.end();
    });
  });
  const url = server.url.replace('http', 'redis');
  const channel = subscribe({ kind: 'redis', url, deadlineMs: DEADLINE_MS, protocol: 2 }, 'name', {
    message() {},
    connected() {},
  });
  try {
    await vi.waitFor(() => expect(subscriptions).toBeGreaterThan(5), SOON);
    expect(unhandled).toEqual([]);
  } finally {
    channel.close();
    await server.close();
    process.off('unhandledRejection', onUnhandled);
  }
});

it.each([
  ['closes without an answer', (end: () => void) => end(), 'UnknownOutcome'],
  ['refuses', (_end: () => void, write: (text: string) => void) => write('-OOM no memory\r\n'), 'ReplyError'],
])('the error of a change says what is known when Redis %s', async (_what, react, name) => {
  const server = await startRawServer((socket) => {
    socket.on('data', (chunk) => {
      const commands = commandsOf(chunk);
      const isChange = commands.includes('eval');
      if (isChange)
        react(
          () => socket.destroy(),
          (text) => socket.write(text),
        );
      else socket.write(commands.map(answerTo).join(''));
    });
  });
  const settings = {
    kind: 'redis',
    url: server.url.replace('http', 'redis'),
    deadlineMs: DEADLINE_MS,
    protocol: 2,
  } as const;
  try {
    const published = openRecord(settings, 'name', (record) => record.publish([{ text: 'a', untilMs: 1 }]));
    await expect(published).rejects.toMatchObject({ name });
  } finally {
    await server.close();
  }
});

it('delivers no message to subscribers of the same prefix in another database of one Redis', async () => {
  const server = await startRedisServer();
  const settingsOf = (database: number): RemoteStoreSettings => ({
    kind: 'redis',
    url: `${server.url}/${database}`,
    deadlineMs: DEADLINE_MS,
  });
  const received = new Map([0, 1, 2].map((database) => [database, new Set<string>()]));
  const channels = [...received].map(([database, texts]) =>
    subscribe(settingsOf(database), 'weir', { message: (text) => texts.add(text), connected() {} }),
  );
  onTestFinished(async () => {
    for (const channel of channels) channel.close();
    await server.stop();
  });
  await Promise.all(channels.map(({ subscribed }) => subscribed));
  const untilMs = Date.now() + 60_000;
  for (const database of received.keys())
    await publish(settingsOf(database), 'weir', `for ${database}`, untilMs);
  for (const [database, texts] of received) {
    await vi.waitFor(() => expect([...texts]).toContain(`for ${database}`), SOON);
  }
  for (const [database, texts] of received) expect([...texts]).toEqual([`for ${database}`]);
});
