/**
 * A replica that counts until it is killed. Writes a line after each round of charges: the time, and the points that were admitted to
 * each owner until then.
 */
import { writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { RemoteStoreSettings } from '../../../src/store/redis/connection/redis-options.ts';
import { Fleet, OWNERS } from './fleet.ts';

const { prefix, limit, settings, url, flushMs } = JSON.parse(process.argv[2] ?? '') as {
  readonly prefix: string;
  readonly limit: number;
  readonly settings: RemoteStoreSettings;
  readonly url: string;
  readonly flushMs: number;
};
const fleet = new Fleet(prefix, limit);
const store = fleet.start(settings, url, flushMs);
await fleet.counting(store);
for (;;) {
  await Promise.all(Array.from({ length: OWNERS }, (_, owner) => fleet.charge(store, owner)));
  const points = Array.from({ length: OWNERS }, (_, owner) => fleet.admittedTo(owner));
  writeSync(1, `${JSON.stringify({ atMs: Date.now(), points })}\n`);
  await pause(5);
}
