/** Puts a configured gateway together and opens its two ports: what `start` and `demo` share. */
import { pino } from 'pino';
import { createMetrics } from '../admin/metrics.ts';
import { createAdminServer } from '../admin/server.ts';
import { Buckets } from '../gateway/buckets.ts';
import { createGateway } from '../gateway/gateway.ts';
import { PriceList } from '../gateway/operations.ts';
import { StaticIdentities } from '../identity/static.ts';
import { openStore } from '../store/open.ts';
import type { Configuration } from './configuration.ts';

export interface RunningGateway {
  /** Where clients connect, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly adminUrl: string;
  /** Turns readiness off, finishes what is under way, then closes everything. */
  close(): Promise<void>;
}

export async function runGateway(configuration: Configuration): Promise<RunningGateway> {
  const { settings, limits, identities, operations } = configuration;
  const log = pino({ level: settings.log.level });
  const metrics = createMetrics();
  const store = openStore(settings.store);
  const known = new StaticIdentities(identities);
  const gateway = await createGateway({
    baseUrl: settings.baseUrl,
    upstreamUrl: settings.upstream.url,
    prices: new PriceList(operations, settings.operations.unlisted),
    identities: known,
    directory: known,
    buckets: new Buckets(settings.store.keyPrefix, limits),
    store,
    observer: metrics,
    log,
    accessLog: settings.log.access,
  });
  let isReady = true;
  const admin = createAdminServer(metrics, { isReady: () => isReady });
  const close = async (): Promise<void> => {
    isReady = false;
    await gateway.close();
    await admin.close();
    await store.close();
  };
  try {
    const url = await gateway.listen(settings.listen);
    const adminUrl = await admin.listen(settings.admin);
    log.info(
      { url, adminUrl, upstream: settings.upstream.url, store: settings.store.kind },
      'weir is listening',
    );
    return { url, adminUrl, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Closes once on SIGTERM or SIGINT; a second signal ends the process at once. */
export function closeOnSignal(close: () => Promise<void>): void {
  let isClosing = false;
  const onSignal = (): void => {
    if (isClosing) process.exit(1);
    isClosing = true;
    void close().then(() => process.exit(0));
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}
