import { type OpenDatabase, openDatabase } from './database/connect.ts';
import { startRetention } from './database/retention.ts';
import type { Database } from './database/schema.ts';
import { readTokenKey } from './database/secrets.ts';
import { startRelay } from './deliveries/relay.ts';
import { startDeliveries } from './deliveries/worker.ts';
import { seedDemoData } from './demo/seed.ts';
import { apiKeyHandlers, serveKeyOwners } from './handlers/api-keys.ts';
import { complianceHandlers } from './handlers/compliance.ts';
import { deliveryHandlers } from './handlers/deliveries.ts';
import { eventHandlers } from './handlers/events.ts';
import { operationHandlers } from './handlers/operations.ts';
import { paymentsHandlers } from './handlers/payments.ts';
import { platformHandlers } from './handlers/platform.ts';
import { resourceHandlers } from './handlers/resources.ts';
import { searchHandlers } from './handlers/search.ts';
import type { Services } from './handlers/services.ts';
import { subscriptionHandlers } from './handlers/subscriptions.ts';
import { triggerHandlers } from './handlers/triggers.ts';
import { webhookSecretHandlers } from './handlers/webhook-secrets.ts';
import { buildApp } from './http/app.ts';
import { serveErrorPages } from './http/error-pages.ts';
import { serveReference } from './http/reference.ts';
import { type Jobs, openJobs } from './jobs/queue.ts';
import { createTokenSealer } from './lists/token.ts';
import { BULK_DISMISS, bulkDismissWork } from './operations/bulk-dismiss.ts';
import { OPERATION_QUEUE } from './operations/operations.ts';
import { openPayableWork, PAYABLE_OPEN, SETTLEMENT_QUEUE, settle } from './operations/payable-open.ts';
import { runOperation } from './operations/run.ts';
import { type PlatformOptions, type PlatformSettings, settleOptions } from './settings.ts';

export interface Platform {
  readonly url: string;
  /** Finishes requests, deliveries and jobs under way, and closes the database. Waits a few seconds for each of these at most. */
  close(): Promise<void>;
}

/** Starts the service behind the gateway. Resolves once it listens. */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const settings = settleOptions(options);
  const database = await openDatabase(settings.database);
  try {
    return await serve(settings, database);
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function serve(settings: PlatformSettings, database: OpenDatabase): Promise<Platform> {
  const { db } = database;
  const sealer = createTokenSealer(await readTokenKey(db), settings.pageTokenLifetimeSeconds, () =>
    settings.now().getTime(),
  );
  // Set once the application exists, so that failures of jobs go to the log of the requests.
  let logError = (error: Error): void => console.error(error);
  const onError = (error: Error) => logError(error);
  const jobs = await database.exclusively(async () => {
    if (settings.seed) await seedDemoData(db);
    return openQueues(settings, database, onError);
  });
  const services = { settings, jobs, sealer };
  const deliveries = startDeliveries(db, settings.deliveries, settings.now, onError);
  runJobs(services, db, () => deliveries.wake());
  const relay = startRelay(db, settings.now, () => deliveries.wake(), onError);
  const stopRetention = startRetention(database.slowDb, settings.now, onError);
  const close = async () => {
    stopRetention();
    await Promise.all([relay.stop(), deliveries.stop(), jobs.stop()]);
  };
  try {
    const app = buildApp(settings, db, handlersOf(services), () => {
      jobs.wake();
      relay.wake();
      deliveries.wake();
    });
    serveKeyOwners(app, db);
    serveReference(app);
    serveErrorPages(app);
    logError = (error) => app.log.error({ err: error }, 'background work failed');
    const url = await app.listen({ host: settings.host, port: settings.port });
    return {
      url,
      async close() {
        await app.close();
        await close();
        await database.close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function handlersOf(services: Services) {
  return {
    ...resourceHandlers(services),
    ...operationHandlers(services),
    ...apiKeyHandlers(services),
    ...eventHandlers(services),
    ...platformHandlers(services),
    ...subscriptionHandlers(services),
    ...webhookSecretHandlers(services),
    ...deliveryHandlers(services),
    ...triggerHandlers(services),
    ...paymentsHandlers(services),
    ...complianceHandlers(services),
    ...searchHandlers(services),
  };
}

async function openQueues(
  { sweepSeconds }: PlatformSettings,
  { executor }: OpenDatabase,
  onError: (error: Error) => void,
): Promise<Jobs> {
  // Repeating a run that is only slow does no harm: the second one waits for the lock and finds the work done.
  const work = { concurrency: 8, expireInSeconds: 5 };
  const queues = [
    { name: OPERATION_QUEUE, ...work, retryLimit: 10, retrySeconds: 1 },
    // Without a limit, because nothing would report a settlement that was given up.
    { name: SETTLEMENT_QUEUE, ...work, retrySeconds: 5 },
  ];
  return openJobs(executor, queues, sweepSeconds, onError);
}

/** Calls `onEnd` after each job, which may have queued deliveries. */
function runJobs({ jobs, settings }: Services, db: Database, onEnd: () => void): void {
  const { now, settlementSeconds } = settings;
  const works = { [PAYABLE_OPEN]: openPayableWork(jobs, settlementSeconds), [BULK_DISMISS]: bulkDismissWork };
  jobs.run({
    [OPERATION_QUEUE]: (job) => runOperation(db, works, now, job).finally(onEnd),
    [SETTLEMENT_QUEUE]: (job) => settle(db, now, job).finally(onEnd),
  });
}
