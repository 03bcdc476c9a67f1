import { spawnSync } from 'node:child_process';
import type { TestProject } from 'vitest/node';
import { installDebianPackage } from '../fixtures/debian.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';

const HINT =
  'The tests need `redis-server` (7 or newer) on PATH: `apt-get install redis-server`, `brew install redis`, or https://redis.io/docs/install.';

/** One Redis for the whole run, on a free port; tests keep apart by key prefix. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (spawnSync('redis-server', ['--version']).status !== 0) installDebianPackage('redis-server', HINT);
  const server = await startRedisServer();
  project.provide('redisUrl', server.url);
  return () => server.stop();
}
