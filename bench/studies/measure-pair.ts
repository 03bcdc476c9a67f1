import type { Running } from '../contestants/contestant.ts';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { type Cost, costOf } from '../lab/turns.ts';
import type { Service } from '../load/upstream.ts';

/**
 * What a request costs two gateways that differ in one thing, each with a Redis of its own, second by second in turn.
 *
 * @param settings of the gateways, by their names
 */
export async function measurePair<Name extends string>(
  bench: Bench,
  settings: Readonly<Record<Name, Parameters<typeof weir>[1]>>,
  load: { readonly accounts?: number } = {},
): Promise<Record<Name, Cost[]>> {
  const sides: { name: Name; redis: Service; gateway: Running }[] = [];
  for (const name of Object.keys(settings) as Name[]) {
    const redis = await bench.startRedis();
    const gateway = await bench.start(weir('redis', settings[name]), name, {
      ...load,
      redisPort: redis.port,
    });
    sides.push({ name, redis, gateway });
  }
  const measure = ({ gateway, redis }: (typeof sides)[number], seconds = 1) =>
    costOf(gateway, () => bench.strictLoad(gateway, { ...load, seconds }), redis);
  for (const side of sides) await measure(side, bench.either(4, 2));
  const seen = await bench.inTurn(sides, measure);
  for (const { gateway, redis } of sides) {
    await gateway.stop();
    await redis.stop();
  }
  return seen as Record<Name, Cost[]>;
}
