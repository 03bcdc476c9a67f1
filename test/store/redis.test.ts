import { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import { defineScripts, runCharge, runPeek } from '../../src/store/redis-scripts.ts';
import { isSound } from '../../src/store/soundness.ts';
import type { Decision } from '../../src/store/store.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { testsOfConformance } from './conformance.ts';

const client = new Redis(sharedRedisUrl());
defineScripts(client);
afterAll(() => client.disconnect());

const INVALID: Decision = { outcome: 'uncounted', reason: 'invalid' };

testsOfConformance(async () => ({
  prefix: uniquePrefix(),
  store: {
    async charge(charge, nowUs) {
      if (!isSound(charge)) return INVALID;
      const [decision = INVALID] = await runCharge(client, [charge], nowUs);
      return decision;
    },
    async peek(charge, nowUs) {
      return isSound(charge) ? runPeek(client, charge, nowUs) : INVALID;
    },
  },
}));
