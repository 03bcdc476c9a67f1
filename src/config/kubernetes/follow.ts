import type { Logger } from 'pino';
import { hostInUrl } from '../../domain/network.ts';
import type { FileSource } from '../reader/file-source.ts';
import type { Settings } from '../settings/settings.ts';
import { ApiServer } from './api-server.ts';
import { MountedFolder } from './mounted-folder.ts';
import { DEFAULT_TIMING, ObjectWatch, type WatchListener } from './object-watch.ts';

/** Called with the state of every watch. The metrics implement it. */
export interface KubernetesObserver {
  watchConnected(name: string, isConnected: boolean): void;
}

const POLL_MS = 1_000;

/**
 * Watches the configured objects until `close` is called, and passes their content to the file source.
 *
 * @param changed called when a folder may have changed
 */
export function followKubernetes(
  { watch, url, credentialsFolder }: Settings['kubernetes'],
  source: FileSource,
  observer: KubernetesObserver,
  log: Logger,
  changed: () => void,
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
    return { folder, watch: new ObjectWatch(object, server, listener, DEFAULT_TIMING) };
  });
  // Read the mount before the watch delivers anything, so that its initial content is known.
  for (const { folder, watch } of followed) void folder.poll(performance.now()).then(() => watch.run());
  const polling = setInterval(() => {
    for (const { folder } of followed) void folder.poll(performance.now());
  }, POLL_MS).unref();
  return {
    close() {
      clearInterval(polling);
      for (const { watch } of followed) watch.close();
    },
  };
}

/** Logs one warning when the first watch fails, and one message when all watches work again. */
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
      `${name} cannot be watched; changes take effect when the kubelet updates the mounted files`,
    );
  }

  ended(name: string): void {
    this.#failing.delete(name);
    if (!this.#isReported || this.#failing.size > 0) return;
    this.#isReported = false;
    this.#log.info('all objects are watched again');
  }
}

/** Kubernetes sets both variables in every container. */
function urlFromEnvironment(): string {
  const { KUBERNETES_SERVICE_HOST: host = 'kubernetes.default.svc', KUBERNETES_SERVICE_PORT: port = '443' } =
    process.env;
  return `https://${hostInUrl(host)}:${port}`;
}
