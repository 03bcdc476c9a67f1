import type { Redis } from 'ioredis';
import type { ServerSetting, StoreObserver } from '../observer.ts';

/**
 * Reports the settings of one Redis under which the counter's guarantees do not hold. They are read from INFO, which
 * managed services and most ACLs allow; what a server does not show is not reported.
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

/** An evicted bucket is a full one again. Buckets expire, so `volatile-*` evicts them as `allkeys-*` does. */
function evictionRisk(memory: ReadonlyMap<string, string>): string | undefined | 'unknown' {
  const policy = memory.get('maxmemory_policy');
  if (policy === undefined) return 'unknown';
  if (policy === 'noeviction') return undefined;
  return `maxmemory-policy is ${policy}: a Redis that is short of memory drops buckets, and their limits are exceeded. Set noeviction`;
}

/** INFO shows `min_slaves_good_slaves` only where both settings are in force. */
function splitBrainRisk(replication: ReadonlyMap<string, string>): string | undefined | 'unknown' {
  if (replication.get('role') !== 'master') return 'unknown';
  const hasReplicas = Number(replication.get('connected_slaves') ?? 0) > 0;
  if (!hasReplicas || replication.has('min_slaves_good_slaves')) return undefined;
  return 'min-replicas-to-write is 0: a primary that is cut off from its replicas goes on counting beside the new one, and limits are exceeded. Set it to 1, and min-replicas-max-lag to a few seconds';
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  return new Map(
    info.split('\r\n').flatMap((line): [string, string][] => {
      const colon = line.indexOf(':');
      return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]];
    }),
  );
}
