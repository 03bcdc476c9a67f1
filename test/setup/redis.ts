import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import type { TestProject } from 'vitest/node';
import { startRedisServer } from '../fixtures/redis-server.ts';

/** One Redis for the whole run, on a free port; tests keep apart by key prefix. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!hasRedisServer()) installRedisServer();
  const server = await startRedisServer();
  project.provide('redisUrl', server.url);
  return () => server.stop();
}

function hasRedisServer(): boolean {
  return spawnSync('redis-server', ['--version']).status === 0;
}

function installRedisServer(): void {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    throw new Error(
      'The tests need `redis-server` (7 or newer) on PATH: `apt-get install redis-server`, `brew install redis`, or https://redis.io/docs/install.',
    );
  }
  console.log("redis-server is missing: installing Debian's package (about 10 s) …");
  withoutServiceStart(() => {
    const run = (args: string[]) =>
      spawnSync('apt-get', ['-y', '-qq', ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
    if (run(['install', 'redis-server']).status !== 0) {
      run(['update']);
      run(['install', 'redis-server']);
    }
  });
  if (!hasRedisServer())
    throw new Error('apt-get could not install redis-server: install it by hand and run the tests again.');
}

/** Debian asks this file before it starts a service; 101 is "no". */
const POLICY_FILE = '/usr/sbin/policy-rc.d';

function withoutServiceStart(install: () => void): void {
  const isOurs = !existsSync(POLICY_FILE);
  if (isOurs) writeFileSync(POLICY_FILE, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    install();
  } finally {
    if (isOurs) rmSync(POLICY_FILE);
  }
}
