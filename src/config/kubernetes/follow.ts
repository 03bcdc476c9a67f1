import type { Logger } from 'pino';
import type { FileSource } from '../reader/file-source.ts';
import type { Settings } from '../settings/settings.ts';
import { ApiServer } from './api-server.ts';
import { MountedFolder } from './mounted-folder.ts';
import { DEFAULT_TIMING, ObjectWatch, type WatchListener } from './object-watch.ts';

/** Receives the state of every watch; the metrics implement it. */
export interface KubernetesObserver {
  watchConnected(name: string, isConnected: boolean): void;
}

interface FollowOptions {
  readonly source: FileSource;
  /** Some folder may have changed. */
  readonly changed: () => void;
  readonly observer: KubernetesObserver;
  readonly log: Logger;
  readonly timing?: typeof DEFAULT_TIMING;
}

const LOOK_MS = 1_000;

/** Watches the objects of the settings until it is closed, and delivers their content to the file source. */
export function followKubernetes(
  { watch, url, credentialsFolder }: Settings['kubernetes'],
  { source, changed, observer, log, timing = DEFAULT_TIMING }: FollowOptions,
): { close(): void } {
  const server = new ApiServer({ url: url ?? urlFromEnvironment(), credentialsFolder });
  const outage = new Outage(log);
  const followed = watch.map((object) => {
    const folder = new MountedFolder(object.folder, source);
    const listener: WatchListener = {
      delivered(texts) {
        folder.delivered(texts, performance.now());
        changed();
      },
      confirmed() {
        folder.confirmed(performance.now());
        observer.watchConnected(object.name, true);
        outage.ended(object.name);
      },
      lost(reason) {
        folder.lost();
        changed();
        observer.watchConnected(object.name, false);
        outage.began(object.name, reason);
      },
    };
    observer.watchConnected(object.name, false);
    return { folder, watch: new ObjectWatch(object, server, listener, timing) };
  });
  // The first look comes before anything is delivered, so that what the mount showed at the start is known.
  for (const { folder, watch } of followed) void folder.look(performance.now()).then(() => watch.run());
  const looking = setInterval(() => {
    for (const { folder } of followed) void folder.look(performance.now());
  }, LOOK_MS).unref();
  return {
    close() {
      clearInterval(looking);
      for (const { watch } of followed) watch.close();
    },
  };
}

/** Warns once, however many watches fail and however often, until all of them work again. */
class Outage {
  readonly #log: Logger;
  readonly #failing = new Set<string>();
  #isReported = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  began(name: string, reason: string): void {
    this.#failing.add(name);
    if (this.#isReported) return;
    this.#isReported = true;
    this.#log.warn(
      { object: name, reason },
      `${name} cannot be watched: until it can, changes take effect when the kubelet updates the mounted files`,
    );
  }

  ended(name: string): void {
    this.#failing.delete(name);
    if (!this.#isReported || this.#failing.size > 0) return;
    this.#isReported = false;
    this.#log.info('every object is watched again');
  }
}

/** Kubernetes sets both in every container. */
function urlFromEnvironment(): string {
  const { KUBERNETES_SERVICE_HOST: host = 'kubernetes.default.svc', KUBERNETES_SERVICE_PORT: port = '443' } =
    process.env;
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
