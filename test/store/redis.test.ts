import { afterAll } from 'vitest';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { openClockedRedis } from './clocked-redis.ts';
import { testsOfConformance } from './conformance.ts';
import { testsOfUsefulness } from './usefulness.ts';

const opened = openClockedRedis({ kind: 'redis', url: sharedRedisUrl(), deadlineMs: 5000 });
afterAll(async () => (await opened).close());

const open = async () => ({ store: (await opened).store, prefix: uniquePrefix() });
testsOfConformance(open, 25);
testsOfUsefulness(open, 30);
