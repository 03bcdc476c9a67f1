import { readFileSync } from 'node:fs';
import RedisStore from '@fastify/rate-limit/store/RedisStore.js';
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { openStore } from '../../src/store/open-store.ts';
import { type Limits, twoBuckets } from '../load/two-buckets.ts';

/** A way to count, as a gateway's replica would use it. Windows are of one second. */
export interface Contender {
  readonly name: string;
  /** False for what can charge one point a time only. */
  readonly canWeigh: boolean;
  open(url: string, prefix: string, limits: Limits): Promise<Counter>;
}

export interface Counter {
  /** Whether the charge was admitted. */
  decide(account: string, organization: string, cost: number): Promise<boolean>;
  close(): Promise<void>;
}

const WINDOW_MS = 1000;

export const weir: Contender = {
  name: 'Weir',
  canWeigh: true,
  async open(url, prefix, limits) {
    const store = openStore({ kind: 'redis', url, deadlineMs: 1000 });
    const decide: Counter['decide'] = async (account, organization, cost) => {
      const buckets = twoBuckets(prefix, account, organization, limits);
      return (await store.charge({ buckets, cost })).outcome === 'admitted';
    };
    while (!(await decide('warm', 'warm', 1))) await new Promise(setImmediate);
    return { decide, close: () => store.close() };
  },
};

function script(name: string, file: string): Contender {
  return {
    name,
    canWeigh: true,
    async open(url, prefix, limits) {
      const client = new Redis(url);
      client.defineCommand('decide', {
        lua: readFileSync(new URL(`scripts/${file}`, import.meta.url), 'utf8'),
      });
      const run = Reflect.get(client, 'decide') as (...args: unknown[]) => Promise<number>;
      return {
        async decide(account, organization, cost) {
          const keys = [`${prefix}:{${organization}}:a:${account}`, `${prefix}:{${organization}}:o`];
          return (
            (await run.call(client, 2, ...keys, WINDOW_MS, cost, limits.account, limits.organization)) === 1
          );
        },
        close: async () => client.disconnect(),
      };
    },
  };
}

const flexible: Contender = {
  name: 'rate-limiter-flexible',
  canWeigh: true,
  async open(url, prefix, limits) {
    const client = new Redis(url);
    const limiter = (name: string, points: number) =>
      new RateLimiterRedis({
        storeClient: client,
        keyPrefix: `${prefix}:${name}`,
        points,
        duration: WINDOW_MS / 1000,
      });
    const [accounts, organizations] = [limiter('a', limits.account), limiter('o', limits.organization)];
    return {
      async decide(account, organization, cost) {
        try {
          await Promise.all([accounts.consume(account, cost), organizations.consume(organization, cost)]);
          return true;
        } catch (denial) {
          if (denial instanceof RateLimiterRes) return false;
          throw denial;
        }
      },
      close: async () => client.disconnect(),
    };
  },
};

const fastify: Contender = {
  name: "@fastify/rate-limit's store (one key)",
  canWeigh: false,
  async open(url, prefix, limits) {
    const client = new Redis(url);
    const store = new RedisStore(false, false, client, `${prefix}:`);
    return {
      decide: (account) =>
        new Promise((resolve, reject) => {
          store.incr(
            account,
            (error, result) => (error === null ? resolve(result.current <= limits.account) : reject(error)),
            WINDOW_MS,
            limits.account,
          );
        }),
      close: async () => client.disconnect(),
    };
  },
};

export const contenders: readonly Contender[] = [
  weir,
  script('two-window weighted script', 'two-windows.lua'),
  script('INCR + EXPIRE script', 'fixed-window.lua'),
  flexible,
  fastify,
];
