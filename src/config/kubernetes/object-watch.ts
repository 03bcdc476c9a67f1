import { setTimeout } from 'node:timers/promises';
import type { FolderTexts } from '../reader/file-source.ts';
import type { ApiServer } from './api-server.ts';
import { linesOf } from './lines.ts';

/** A ConfigMap or Secret of the pod's namespace. */
export interface WatchedObject {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
}

export interface WatchListener {
  /** The object as it is now; after a reconnect also where it has not changed. */
  delivered(texts: FolderTexts): void;
  /** The watch is established, or the server has sent something: what was delivered last is current. */
  confirmed(): void;
  /** The watch has failed and will be tried again. */
  lost(reason: string): void;
}

export interface WatchTiming {
  /** Longest life of one watch; the server ends it. */
  readonly watchSeconds: number;
  /** The server sends a bookmark about every minute, so a connection that is silent for longer is dead. */
  readonly idleMs: number;
  /** Before the first retry; twice as long before each further one. */
  readonly firstBackoffMs: number;
  /** A watch that lasts longer than this ends a series of failures. */
  readonly longestBackoffMs: number;
}

export const DEFAULT_TIMING: WatchTiming = {
  watchSeconds: 300,
  idleMs: 100_000,
  firstBackoffMs: 500,
  longestBackoffMs: 30_000,
};

const RESOURCES = { ConfigMap: 'configmaps', Secret: 'secrets' } as const;

/** An object holds 1 MiB at most (3 MiB with `managedFields` and escapes). */
const MOST_CHARACTERS = 8 * 1_048_576;

interface KubernetesObject {
  readonly metadata?: { readonly resourceVersion?: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: KubernetesObject & { readonly code?: number; readonly message?: string };
}

/**
 * Keeps one object in view until it is closed: reads it, then watches it from the version that was read. Whatever
 * ends a watch, the object is read again, so no change is missed and no version has to be remembered.
 */
export class ObjectWatch {
  readonly #object: WatchedObject;
  readonly #server: ApiServer;
  readonly #listener: WatchListener;
  readonly #timing: WatchTiming;
  readonly #closing = new AbortController();
  #failures = 0;

  constructor(object: WatchedObject, server: ApiServer, listener: WatchListener, timing = DEFAULT_TIMING) {
    this.#object = object;
    this.#server = server;
    this.#listener = listener;
    this.#timing = timing;
  }

  /** Ends only after `close`. */
  async run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const startedMs = performance.now();
      try {
        await this.#watch(await this.#read());
      } catch (error) {
        if (signal.aborted) return;
        this.#listener.lost(error instanceof Error ? error.message : String(error));
      }
      const isLasting = performance.now() - startedMs > this.#timing.longestBackoffMs;
      this.#failures = isLasting ? 0 : this.#failures + 1;
      await setTimeout(this.#waitMs(), undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  close(): void {
    this.#closing.abort();
  }

  /** Delivers the object as it is now; answers its version. */
  async #read(): Promise<string> {
    const { kind, name } = this.#object;
    const response = await this.#server.get(`${RESOURCES[kind]}/${name}`, this.#requestOptions());
    let text = '';
    for await (const chunk of response as AsyncIterable<string>) {
      text += chunk;
      if (text.length > MOST_CHARACTERS) throw new Error(`more than ${MOST_CHARACTERS} characters`);
    }
    const object = JSON.parse(text) as KubernetesObject;
    this.#deliver(object);
    return object.metadata?.resourceVersion ?? '';
  }

  /** Follows the object until the server ends the watch. Throws if it ends for any reason but its age. */
  async #watch(resourceVersion: string): Promise<void> {
    const { kind, name } = this.#object;
    const query = new URLSearchParams({
      watch: 'true',
      fieldSelector: `metadata.name=${name}`,
      resourceVersion,
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(this.#timing.watchSeconds),
    });
    const response = await this.#server.get(`${RESOURCES[kind]}?${query}`, this.#requestOptions());
    this.#listener.confirmed();
    let isAlive = false;
    for await (const line of linesOf(response as AsyncIterable<string>, MOST_CHARACTERS)) {
      this.#take(JSON.parse(line) as WatchEvent);
      isAlive = true;
    }
    if (!isAlive) throw new Error('the API server ended the watch before it sent anything');
  }

  #take({ type, object }: WatchEvent): void {
    if (type === 'ERROR') throw new Error(`${object.code}: ${object.message}`);
    this.#listener.confirmed();
    // A deleted ConfigMap stays mounted, and what it held stays in force; it may be created again.
    if (type === 'ADDED' || type === 'MODIFIED') this.#deliver(object);
  }

  #deliver(object: KubernetesObject): void {
    this.#listener.delivered(textsOf(object, this.#object.kind));
  }

  #requestOptions() {
    return { idleMs: this.#timing.idleMs, signal: this.#closing.signal };
  }

  /** Replicas that lost the same server come back scattered. */
  #waitMs(): number {
    const { firstBackoffMs, longestBackoffMs } = this.#timing;
    const longestMs = Math.min(longestBackoffMs, firstBackoffMs * 2 ** Math.max(0, this.#failures - 1));
    return longestMs * (0.5 + Math.random() / 2);
  }
}

function textsOf({ data = {}, binaryData = {} }: KubernetesObject, kind: WatchedObject['kind']): FolderTexts {
  const decoded = (entries: Readonly<Record<string, string>>): [string, string][] =>
    Object.entries(entries).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]);
  if (kind === 'Secret') return new Map(decoded(data));
  return new Map([...Object.entries(data), ...decoded(binaryData)]);
}
