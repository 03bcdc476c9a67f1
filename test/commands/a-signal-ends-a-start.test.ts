import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startRawServer } from '../fixtures/raw-server.ts';
import { BARE } from '../fixtures/weir-process.ts';

const WEIR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** `weir start` that waits for a Redis which never answers. */
async function startWaiting() {
  const redis = await startRawServer(() => {});
  onTestFinished(() => redis.close());
  const file = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    store: { kind: 'redis', url: redis.url.replace('http:', 'redis:') },
    settings: { shutdown: { drainDelaySeconds: 3_600 } },
  });
  const child = spawn(process.execPath, [WEIR, 'start', '--config', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: BARE,
  });
  const ended = once(child, 'exit');
  await expect.poll(() => redis.connectionCount, { interval: 5 }).toBeGreaterThan(0);
  return { child, ended };
}

// As the first process of a container, it would go on without a handler. Here, the signal itself would end it.
it('a signal before it listens ends it with 0, and not after a drain', async () => {
  const { child, ended } = await startWaiting();
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

it('a second signal ends it at once', async () => {
  const { child, ended } = await startWaiting();
  child.kill('SIGTERM');
  child.kill('SIGINT');
  expect(await ended).toEqual([1, null]);
});
