/** Puts a configured gateway together and opens its ports: what `start` and `demo` share. */
import { setTimeout } from 'node:timers/promises';
import { askStore } from '../admin/fleet/store-health.ts';
import { identitySections } from '../config/settings/credentials.ts';
import type { Settings } from '../config/settings/settings.ts';
import { withinMs } from '../domain/awaitable.ts';
import { hostInUrl } from '../domain/network.ts';
import type { FactSharing } from '../facts/fact-listener.ts';
import { Ignored, type SharedObserver } from '../facts/ignored.ts';
import { SharedClock } from '../facts/shared-clock.ts';
import { createGateway } from '../gateway/clients.ts';
import { Receipts } from '../gateway/decisions/api/receipt.ts';
import { ReceiptKeys } from '../gateway/decisions/api/receipt-keys.ts';
import { createDecisionServer } from '../gateway/decisions/decision-server.ts';
import type { Address, Gateway, GatewayDependencies } from '../gateway/dependencies.ts';
import type { PortTls } from '../http/server/tls.ts';
import { AccessLog } from '../observe/log/access-log.ts';
import { type Log, openLog } from '../observe/log/log.ts';
import { Changes } from '../observe/log/noticed-changes.ts';
import { createMetrics, type Metrics } from '../observe/metrics/metrics.ts';
import { startTelemetry } from '../observe/otel/start-telemetry.ts';
import { Buckets } from '../stages/buckets/buckets.ts';
import type { OperationTable } from '../stages/match.ts';
import { openShared, openStore } from '../store/open-store.ts';
import type { SharedStore } from '../store/shared-store.ts';
import type { Store } from '../store/store.ts';
import type { StoreObserver } from '../store/store-observer.ts';
import { type Configuration, operationTableOf, type Reloadable } from './configuration.ts';
import { endingOf } from './ending.ts';
import { openPort, type Section } from './open-port.ts';
import { runAdmin } from './parts/run-admin.ts';
import { RunningCosts } from './parts/run-costs.ts';
import { runEnvoy } from './parts/run-envoy.ts';
import { runIdentity } from './parts/run-identity.ts';
import { runJournal } from './parts/run-journal.ts';
import { runNotifications } from './parts/run-notifications.ts';
import { runShare } from './parts/run-share.ts';
import { runTls } from './port-tls.ts';
import { followConfiguration } from './reload.ts';
import { observeStore } from './store-log.ts';

export interface RunningGateway {
  /** Where clients connect, such as `http://127.0.0.1:8080`; undefined where the gateway only decides. */
  readonly url: string | undefined;
  readonly adminUrl: string;
  /** Where proxies ask for decisions, such as `http://127.0.0.1:9000` or `unix:/run/weir.sock`; undefined where they cannot. */
  readonly decisionsUrl: string | undefined;
  /** Where Envoy asks by its own protocol, such as `http://127.0.0.1:8081`; undefined where it cannot. */
  readonly envoyUrl: string | undefined;
  /** Turns readiness off, finishes what is under way, then closes everything. */
  close(): Promise<void>;
  /**
   * As `close`, but still takes requests for `shutdown.drainDelaySeconds`, each the last of its connection: load
   * balancers need that long to notice that this replica is not ready.
   */
  drain(): Promise<void>;
}

export async function runGateway(configuration: Configuration, given?: Log): Promise<RunningGateway> {
  const { settings } = configuration;
  const { log, lines } = given ?? openLog(settings.log.level, undefined, settings.log.fields);
  const metrics = createMetrics(identitySections(settings));
  const storeObserver = observeStore(metrics, log);
  const journal = await runJournal(settings, metrics, log);
  const store = journal.recording(openStore(settings.store, storeObserver, journal.marks));
  const sharing = openSharing(settings, metrics, log);
  const { store: shared, clock } = sharing;
  const share = runShare(settings.store, store, shared, metrics);
  const reporting = { log, changes: new Changes(log, () => clock.nowMs()) };
  const identity = runIdentity(configuration, sharing, metrics, reporting.changes);
  const operationTable = operationTableOf(configuration);
  const buckets = openBuckets(configuration, clock);
  const state = { isReady: true };
  const tls = runTls(configuration, metrics, log);
  const parts = { store, journal, sharing, share, buckets, clock, identity, metrics, ...reporting };
  const admin = runAdmin(configuration, { ...parts, tls, isReady: () => state.isReady });
  const telemetry = await startTelemetry(process.env, log, metrics);
  const notifications = await runNotifications(settings, sharing, metrics, reporting.changes);
  const dependencies = {
    ...gatewaySettings(settings, metrics),
    operations: operationTable,
    identities: identity.source,
    directory: identity.directory,
    credentials: identity.credentials,
    buckets,
    store: share.store,
    log,
    blocks: admin.blocks,
    observer: notifications.observing(admin.observer),
    reports: admin.reports,
    tls: tls.listen,
    accessLog: settings.log.access ? new AccessLog(log, lines, settings.log.fields) : undefined,
    tracing: telemetry.tracing,
    isDraining: () => !state.isReady,
  };
  const envoy = await runEnvoy(configuration, { ...dependencies, tls: tls.decisions, observer: metrics });
  const ports = await createPorts(settings, dependencies, shared, tls.decisions, envoy?.server);
  tls.followUpstreams(ports.upstreams);
  const costs = new RunningCosts(buckets, configuration, reporting.changes);
  const reloaded = reloadableOf(buckets, costs, operationTable, identity, admin, envoy);
  const following = followConfiguration(configuration, reloaded, metrics, reporting);
  const closed = [[following, tls], [ports], [admin], [notifications, telemetry, identity, share, store]];
  const ending = endingOf(state, closed, settings, log);
  try {
    await Promise.all([untilCounting(store, settings.store.keyPrefix, storeObserver, journal), admin.ready]);
    const { url, decisionsUrl, envoyUrl } = await ports.open();
    const adminUrl = await openPort('admin', settings.admin, (address) => admin.listen(address));
    return noted({ url, adminUrl, decisionsUrl, envoyUrl, ...ending }, settings, log);
  } catch (error) {
    await ending.close();
    throw error;
  }
}

function openBuckets({ settings, limits }: Configuration, clock: SharedClock): Buckets {
  const { store, limits: shown } = settings;
  const buckets = new Buckets(store.keyPrefix, limits, () => clock.nowMs(), shown.fields);
  clock.onSetBack = () => buckets.forget();
  return buckets;
}

/** What replicas share, and the clock by which they share it. */
function openSharing({ store }: Settings, observer: SharedObserver, log: Log['log']): FactSharing {
  const ignored = new Ignored('key', observer, log);
  const shared = openShared(store, (key) => ignored.add('type', 1, key));
  return { store: shared, clock: new SharedClock(), observer, log };
}

/** Everything that uses a reloaded file. */
function reloadableOf(
  buckets: Buckets,
  costs: RunningCosts,
  operationTable: OperationTable,
  identity: ReturnType<typeof runIdentity>,
  admin: ReturnType<typeof runAdmin>,
  envoy: Awaited<ReturnType<typeof runEnvoy>>,
): Reloadable {
  return {
    limits(changed) {
      buckets.replaceLimits(changed);
      costs.update();
    },
    operations(changed) {
      for (const holder of [operationTable, admin, costs]) holder.replaceOperations(changed);
    },
    identities(changed) {
      for (const holder of [identity, admin]) holder.replaceIdentities(changed);
    },
    credential(index, changed) {
      for (const holder of [identity, admin]) holder.replaceCredential(index, changed);
    },
    descriptors: (changed) => envoy?.replaceRules(changed),
  };
}

function gatewaySettings(settings: Settings, metrics: Metrics) {
  const { baseUrl, listen, cors, upstream, usage, store } = settings;
  const httpMetrics = settings.metrics.http ? metrics.openHttp() : undefined;
  return { baseUrl, listen, cors, upstream, usage, onStoreFailure: store.onStoreFailure, httpMetrics };
}

/** The port for clients and the place for the decisions of other proxies, as far as they are set. */
async function createPorts(
  { listen, decisions, shutdown, store }: Settings,
  dependencies: GatewayDependencies,
  shared: SharedStore | undefined,
  decisionTls: PortTls | undefined,
  envoy: Gateway | undefined,
) {
  const decides = (decisions.port ?? decisions.socketPath) !== undefined;
  const gateway = listen.port === 'off' ? undefined : await createGateway(dependencies);
  const receipts = new Receipts(new ReceiptKeys(shared, dependencies.log), store.keyPrefix);
  const decider = decides
    ? await createDecisionServer(dependencies, decisions, receipts, decisionTls)
    : undefined;
  const open = (name: Section, port: Gateway | undefined, address: Address) =>
    port && openPort(name, address, () => port.listen(address));
  return {
    upstreams: gateway?.upstreams ?? [],
    async open() {
      const url = await open('listen', gateway, { ...listen, port: Number(listen.port) });
      return {
        url,
        decisionsUrl: await open('decisions', decider, { port: 0, ...decisions }),
        envoyUrl: await open('decisions.envoy', envoy, { host: decisions.host, port: 0, ...decisions.envoy }),
      };
    },
    async close() {
      await Promise.all([gateway, decider, envoy].map((port) => port?.close(shutdown.graceSeconds * 1000)));
    },
  };
}

function noted(running: RunningGateway, settings: Settings, log: Log['log']): RunningGateway {
  log.info(listeningLine(settings, running), 'weir is listening');
  return running;
}

function listeningLine(
  { listen, admin, decisions, upstream, store }: Settings,
  { url, adminUrl, decisionsUrl, envoyUrl }: RunningGateway,
) {
  return {
    url: url && withHost(url, listen.host),
    adminUrl: withHost(adminUrl, admin.host),
    decisionsUrl: decisionsUrl && withHost(decisionsUrl, decisions.host),
    envoyUrl,
    upstream: url && new URL(upstream.url).origin,
    store: store.kind,
  };
}

/** The URL with the address that was asked for: 0.0.0.0 is every address, and not 127.0.0.1 alone. */
function withHost(url: string, host: string): string {
  if (url.startsWith('unix:')) return url;
  const { protocol, port } = new URL(url);
  return `${protocol}//${hostInUrl(host)}:${port}`;
}

/** Longest wait for counts that Redis has lost, for the same reason. */
const RECOVERY_WAIT_MS = 5_000;

async function untilCounting(
  store: Store,
  keyPrefix: string,
  observer: StoreObserver,
  { recovered }: { recovered?(): Promise<void> },
): Promise<void> {
  await untilAnswering(store, keyPrefix, observer);
  if (recovered !== undefined) await withinMs(recovered(), RECOVERY_WAIT_MS);
}

/** Longest wait for the store's first answer: a replica that starts should not serve its first requests degraded. */
const STORE_WAIT_MS = 1_000;
const STORE_LOOK_MS = 10;

/**
 * Waits until the store answers, for a moment at most: a dead store must not keep the gateway from starting. The observer
 * gets the reason why it has not answered.
 */
async function untilAnswering(store: Store, keyPrefix: string, observer: StoreObserver): Promise<void> {
  const giveUpMs = performance.now() + STORE_WAIT_MS;
  for (;;) {
    const problem = await askStore(store, keyPrefix);
    if (problem === undefined) return;
    if (performance.now() >= giveUpMs) {
      observer.uncounted(problem, 0);
      return;
    }
    await setTimeout(STORE_LOOK_MS);
  }
}
