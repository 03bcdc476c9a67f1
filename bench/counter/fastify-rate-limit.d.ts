declare module '@fastify/rate-limit/store/RedisStore.js' {
  import type { Redis } from 'ioredis';

  class RedisStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, redis: Redis, key: string);
    incr(
      id: string,
      callback: (error: Error | null, result: { current: number; ttl: number }) => void,
      windowMs: number,
      max: number,
    ): void;
  }
  export = RedisStore;
}
