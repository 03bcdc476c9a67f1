import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { commonOptions } from '../../../src/store/redis/connection/redis-options.ts';

const REFUSAL = '-DENIED Redis is running in protected mode and no password is set for the default user.\r\n';

test.each([2, 3] as const)(
  'the refusal of protected mode is an error that names it, RESP%i',
  async (protocol) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue();
    const server = createServer((socket) => socket.on('error', () => {}).end(REFUSAL)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = new Redis(`redis://:a-password@127.0.0.1:${(server.address() as AddressInfo).port}`, {
      ...commonOptions({ deadlineMs: 1000, protocol }),
      enableOfflineQueue: false,
      retryStrategy: () => null,
    });
    onTestFinished(() => {
      client.disconnect();
      server.close();
      warn.mockRestore();
    });
    const [error] = await once(client, 'error');
    expect(error).toMatchObject({ message: expect.stringContaining('DENIED Redis is in protected mode') });
    expect(warn).not.toHaveBeenCalled();
  },
);
