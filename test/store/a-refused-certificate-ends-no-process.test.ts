import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { newCertificate } from '../fixtures/certificate.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';

/** Of these, about one in six closes at the wrong moment. */
const STORES = 150;
/** A handshake takes less. */
const LONGEST_MS = 30;

test('a store that is closed while it refuses the certificate of Redis ends no process', async () => {
  const { certFile, keyFile } = newCertificate();
  const redis = await startRedisServer({
    scheme: 'rediss',
    args: [
      ...['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile],
      ...['--tls-auth-clients', 'yes'],
    ],
  });
  onTestFinished(() => redis.stop());
  const uncaught: Error[] = [];
  const note = (error: Error) => uncaught.push(error);
  process.on('uncaughtException', note);
  onTestFinished(() => void process.off('uncaughtException', note));
  const tls = { caFile: newCertificate().certFile, certFile, keyFile };
  for (let index = 0; index < STORES; index++) {
    const store = openStore({ kind: 'redis', url: redis.url, deadlineMs: 1_000, tls });
    await pause((index * LONGEST_MS) / STORES);
    await store.close();
    await pause(3);
  }
  // Its end closes all connections.
  await redis.kill();
  await pause(100);
  expect(uncaught).toEqual([]);
});
