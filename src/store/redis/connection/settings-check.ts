import type { Redis } from 'ioredis';
import { pace } from '../../../domain/pace.ts';
import type { ServerSetting, StoreObserver } from '../../store-observer.ts';

/**
 * Reports settings of a Redis that break the counter's guarantees. They are read from INFO, which managed services and most ACLs
 * allow; a setting that INFO does not contain is not reported.
 */
export async function checkSettings(client: Redis, route: string, observer: StoreObserver): Promise<void> {
  try {
    const [memory, replication] = await Promise.all([client.info('memory'), client.info('replication')]);
    report('maxmemory-policy', evictionRisk(fieldsOf(memory)));
    report('min-replicas', splitBrainRisk(fieldsOf(replication)));
  } catch {
    // INFO is not allowed, or the connection ended, which is reported elsewhere.
  }

  function report(setting: ServerSetting, risk: string | undefined | 'unknown'): void {
    if (risk !== 'unknown') observer.settingChecked(route, setting, risk);
  }
}

/**
 * Checks these servers again from time to time until the function that it returns is called: settings can be changed while Redis runs,
 * and a primary that was promoted has no replicas at first.
 */
export function watchSettings(
  servers: () => Iterable<readonly [route: string, client: Redis]>,
  observer: StoreObserver,
): () => void {
  const timer = setInterval(() => {
    for (const [route, client] of servers()) void checkSettings(client, route, observer);
  }, pace.settingsMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** An evicted bucket is full again. Buckets expire, so `volatile-*` evicts them like `allkeys-*`. */
function evictionRisk(memory: ReadonlyMap<string, string>): string | undefined | 'unknown' {
  const policy = memory.get('maxmemory_policy');
  if (policy === undefined) return 'unknown';
  if (policy === 'noeviction') return undefined;
  return `maxmemory-policy is ${policy}: a Redis that is short of memory drops buckets, and their limits are exceeded. Set noeviction`;
}

/** INFO contains `min_slaves_good_slaves` only if both settings are set. */
function splitBrainRisk(replication: ReadonlyMap<string, string>): string | undefined | 'unknown' {
  const role = replication.get('role');
  if (role === undefined) return 'unknown';
  // A replica takes no writes.
  if (role !== 'master') return undefined;
  const hasReplicas = Number(replication.get('connected_slaves') ?? 0) > 0;
  if (!hasReplicas || replication.has('min_slaves_good_slaves')) return undefined;
  return 'min-replicas-to-write is 0: a primary that is cut off from its replicas continues to count alongside the new one, and limits are exceeded. Set it to 1, and min-replicas-max-lag to a few seconds';
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  return new Map(
    info.split('\r\n').flatMap((line): [string, string][] => {
      const colon = line.indexOf(':');
      return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]];
    }),
  );
}
