import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { EncodedCommand } from '../../../src/store/redis/connection/ioredis-internals.ts';
import { commonOptions } from '../../../src/store/redis/connection/options.ts';
import { sharedRedisUrl } from '../../fixtures/redis-url.ts';

/** A command with these bytes, and what became of it. */
class Sent extends EncodedCommand {
  readonly sockets: object[] = [];
  readonly answers: (Error | Buffer)[] = [];
  readonly #bytes: string;

  constructor(bytes: string) {
    super('evalsha', 0);
    this.#bytes = bytes;
  }

  protected override encode(socket: object): string {
    this.sockets.push(socket);
    return this.#bytes;
  }

  protected override answered(error: Error | undefined, reply: Buffer): void {
    this.answers.push(error ?? reply);
  }
}

function resp(...words: string[]): string {
  return [`*${words.length}`, ...words.flatMap((word) => [`$${Buffer.byteLength(word)}`, word]), ''].join(
    '\r\n',
  );
}

function clientOf(url: string, protocol: 2 | 3): Redis {
  const client = new Redis(url, {
    ...commonOptions({ deadlineMs: 1000, protocol }),
    enableOfflineQueue: false,
    retryStrategy: () => null,
  });
  onTestFinished(() => client.disconnect());
  return client;
}

/** The address of a server that does this with each connection. */
async function serve(answer: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    answer(socket);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, 'listening');
  return `redis://:a-password@127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([2, 3] as const)(
  'a command writes its own bytes and gets those of the reply, RESP%i',
  async (protocol) => {
    const client = clientOf(sharedRedisUrl(), protocol);
    await once(client, 'ready');
    const sent = [
      new Sent(resp('ECHO', 'zwölf')),
      new Sent(resp('EVAL', "return '\\255\\0\\1'", '0')),
      new Sent(resp('EVAL', "return redis.error_reply('CODE words')", '0')),
    ];
    for (const command of sent) client.sendCommand(command);
    // The next reply belongs to the next command: none of these took two.
    expect(await client.echo('after')).toBe('after');
    expect(sent.map(({ answers }) => answers)).toEqual([
      [Buffer.from('zwölf')],
      [Buffer.from([255, 0, 1])],
      [expect.objectContaining({ name: 'ReplyError', message: 'CODE words' })],
    ]);
    const sockets = new Set(sent.flatMap((command) => command.sockets));
    expect(sent.map((command) => command.sockets.length)).toEqual([1, 1, 1]);
    expect(sockets.size).toBe(1);
  },
);

test('a command whose connection breaks, or that cannot be sent, gets an error', async () => {
  const url = await serve((socket) => socket.on('data', () => socket.destroy()));
  const client = clientOf(url.replace(':a-password@', ''), 2);
  client.on('error', () => {});
  await once(client, 'ready');
  const broken = new Sent(resp('ECHO', 'one'));
  client.sendCommand(broken);
  await once(client, 'end');
  const unsent = new Sent(resp('ECHO', 'two'));
  client.sendCommand(unsent);
  expect([...broken.answers, ...unsent.answers]).toEqual([expect.any(Error), expect.any(Error)]);
  expect(unsent.sockets).toEqual([]);
});

test.each([2, 3] as const)(
  'the refusal of protected mode is an error that names it, RESP%i',
  async (protocol) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue();
    onTestFinished(() => warn.mockRestore());
    const refusal =
      '-DENIED Redis is running in protected mode and no password is set for the default user.\r\n';
    const client = clientOf(await serve((socket) => socket.end(refusal)), protocol);
    const [error] = await once(client, 'error');
    expect(error).toMatchObject({ message: expect.stringContaining('DENIED Redis is in protected mode') });
    expect(warn).not.toHaveBeenCalled();
  },
);
