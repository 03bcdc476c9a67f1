import type { IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { type Backoff, backoffMs } from '../../domain/backoff.ts';
import type { FolderTexts } from '../reader/file-source.ts';
import { ApiError, type ApiServer } from './api-server.ts';

/** A ConfigMap or Secret in the pod's namespace. */
interface WatchedObject {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
}

export interface WatchListener {
  /** The current content of the object. Also called after a reconnect, even if nothing has changed. */
  delivered(texts: FolderTexts): void;
  /** The watch is established, or the server has sent an event: the version that was delivered last is current. */
  confirmed(): void;
  /** The watch has failed and will be retried. */
  lost(reason: string): void;
}

export const DEFAULT_TIMING = {
  /** Longest duration of one watch. The server ends it. */
  watchSeconds: 300,
  /** The server sends a bookmark about every minute, so a connection without data for this long is dead. */
  idleMs: 100_000,
  /** Waits between retries. A watch that lasts longer than the longest wait starts them anew. */
  backoff: { firstMs: 500, longestMs: 30_000, jitter: [0.5, 1] } satisfies Backoff,
};

const RESOURCES = { ConfigMap: 'configmaps', Secret: 'secrets' } as const;

/** Kubernetes limits an object to 1 MiB, which is at most 3 MiB of JSON with `managedFields` and escapes. */
const MAX_CHARACTERS = 8 * 1_048_576;

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
 * How a watch begins: with the object as the server's cache has it. The cache answers at once and sends bookmarks. The version of an object is
 * its last change, and the server refuses those that it no longer has in memory (410), which after its restart is each one of an object
 * that has not changed since. `kubectl` begins from the version of a list, for which the pods have no permission.
 */
const WITH_THE_OBJECT = { resourceVersion: '0' };

/**
 * With the next change. A server with the feature WatchList, as Kubernetes 1.34 has it, and an etcd before 3.4.31 or 3.5.13 refuses to begin
 * with the object. A server without the feature refuses this.
 */
const WITH_THE_NEXT_CHANGE = {
  resourceVersion: '0',
  resourceVersionMatch: 'NotOlderThan',
  sendInitialEvents: 'false',
};

/**
 * Watches one object until `close` is called. Reads the object, then watches it. After every end of a watch it reads the object again,
 * so no change is missed.
 */
export class ObjectWatch {
  readonly #object: WatchedObject;
  readonly #server: ApiServer;
  readonly #listener: WatchListener;
  readonly #timing;
  readonly #closing = new AbortController();
  #failures = 0;
  #establishedMs: number | undefined;

  constructor(object: WatchedObject, server: ApiServer, listener: WatchListener, timing = DEFAULT_TIMING) {
    this.#object = object;
    this.#server = server;
    this.#listener = listener;
    this.#timing = timing;
  }

  /** Runs until `close` is called. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      this.#establishedMs = undefined;
      try {
        await this.#watch(await this.#read());
      } catch (error) {
        if (signal.aborted) return;
        this.#listener.lost(error instanceof Error ? error.message : String(error));
      }
      this.#failures = this.#hasLasted() ? 0 : this.#failures + 1;
      await setTimeout(backoffMs(this.#timing.backoff, this.#failures), undefined, {
        signal,
        ref: false,
      }).catch(() => undefined);
    }
  }

  close(): void {
    this.#closing.abort();
  }

  /** Delivers the current object and returns its version. */
  async #read(): Promise<string | undefined> {
    const { kind, name } = this.#object;
    const response = await this.#server.get(`${RESOURCES[kind]}/${name}`, this.#requestOptions());
    let text = '';
    for await (const chunk of response as AsyncIterable<string>) {
      text += chunk;
      if (text.length > MAX_CHARACTERS) throw new Error(`more than ${MAX_CHARACTERS} characters`);
    }
    const object = JSON.parse(text) as KubernetesObject;
    this.#deliver(object);
    return object.metadata?.resourceVersion;
  }

  /**
   * Watches the object until the server ends the watch. Throws if the watch ends before its time.
   *
   * @param known the version that was read
   */
  async #watch(known: string | undefined): Promise<void> {
    try {
      await this.#take(await this.#open(WITH_THE_OBJECT), known);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      await this.#watchFromNow();
    }
  }

  async #watchFromNow(): Promise<void> {
    const events = await this.#open(WITH_THE_NEXT_CHANGE);
    try {
      // What has changed before the watch began.
      const known = await this.#read();
      this.#listener.confirmed();
      await this.#take(events, known);
    } finally {
      events.destroy();
    }
  }

  async #open(beginning: Readonly<Record<string, string>>): Promise<IncomingMessage> {
    const { kind, name } = this.#object;
    const query = new URLSearchParams({
      watch: 'true',
      fieldSelector: `metadata.name=${name}`,
      ...beginning,
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(this.#timing.watchSeconds),
    });
    const events = await this.#server.get(`${RESOURCES[kind]}?${query}`, this.#requestOptions());
    this.#establishedMs = performance.now();
    return events;
  }

  /** @throws ApiError if the server refuses the watch, by its first event */
  async #take(events: IncomingMessage, known: string | undefined): Promise<void> {
    let hasBegun = false;
    let hasReceived = false;
    for await (const line of linesOf(events as AsyncIterable<string>, MAX_CHARACTERS)) {
      const event = JSON.parse(line) as WatchEvent;
      const { type, object } = event;
      if (type === 'ERROR') throw new (hasBegun ? Error : ApiError)(`${object.code}: ${object.message}`);
      hasBegun = true;
      this.#listener.confirmed();
      // The server's cache may be older than what was read.
      if (isKnown(event, known)) continue;
      hasReceived = true;
      // The content of a deleted ConfigMap stays mounted and stays in force. The ConfigMap may be created again.
      if (type === 'ADDED' || type === 'MODIFIED') this.#deliver(object);
    }
    if (!hasReceived) throw new Error('the API server ended the watch before it sent anything new');
  }

  #hasLasted(): boolean {
    if (this.#establishedMs === undefined) return false;
    return performance.now() - this.#establishedMs > this.#timing.backoff.longestMs;
  }

  #deliver(object: KubernetesObject): void {
    this.#listener.delivered(textsOf(object, this.#object.kind));
  }

  #requestOptions() {
    return { idleMs: this.#timing.idleMs, signal: this.#closing.signal };
  }
}

/** Whether an event has a version of the object that is not newer than the one that was read. */
function isKnown({ type, object }: WatchEvent, known: string | undefined): boolean {
  const version = object?.metadata?.resourceVersion;
  if ((type !== 'ADDED' && type !== 'MODIFIED') || version === undefined || known === undefined) return false;
  return version === known || isOlder(version, known);
}

/** Whether one version of an object precedes another one. Versions are whole numbers of any length. */
function isOlder(version: string, other: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(other)) return false;
  return version.length === other.length ? version < other : version.length < other.length;
}

function textsOf({ data = {}, binaryData = {} }: KubernetesObject, kind: WatchedObject['kind']): FolderTexts {
  const decoded = (entries: Readonly<Record<string, string>>): [string, string][] =>
    Object.entries(entries).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]);
  if (kind === 'Secret') return new Map(decoded(data));
  return new Map([...Object.entries(data), ...decoded(binaryData)]);
}

/**
 * The lines of a stream, without line terminators. Text after the last terminator is dropped.
 *
 * @throws Error if a line is longer than `maxCharacters`
 */
async function* linesOf(stream: AsyncIterable<string>, maxCharacters: number): AsyncGenerator<string> {
  let parts: string[] = [];
  let length = 0;
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', start)) {
      parts.push(chunk.slice(start, end));
      yield parts.join('');
      parts = [];
      length = 0;
      start = end + 1;
    }
    parts.push(chunk.slice(start));
    length += chunk.length - start;
    if (length > maxCharacters) throw new Error(`a line of more than ${maxCharacters} characters`);
  }
}
