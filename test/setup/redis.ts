import type { TestProject } from 'vitest/node';
import { requirePackage } from '../fixtures/packages.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';

/** One Redis for the whole run, on a free port. Each test uses its own key prefix. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  requirePackage('redis-server');
  const server = await startRedisServer();
  project.provide('redisUrl', server.url);
  return () => server.stop();
}
