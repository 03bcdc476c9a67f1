import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FileSource, type FolderTexts, isSameFolder } from '../reader/file-source.ts';
import { stateOf } from '../watch.ts';

/**
 * Longest time that the kubelet takes to update a mount after its object has changed. It syncs every 60 to 90 s, from a
 * cache that can be minutes old (`configMapAndSecretChangeDetectionStrategy: Cache`).
 */
const MAX_LAG_MS = 300_000;

/**
 * One mounted ConfigMap or Secret that is also watched through the API server. Decides which of the two versions is used:
 *
 * - While the watch is connected, the version that it delivered.
 * - Without the watch, still the delivered version, until the mount shows one that cannot be older: either the mount had
 *   already shown the delivered version and has changed since, or it changed more than the longest kubelet lag after the
 *   watch was last confirmed.
 */
export class MountedFolder {
  readonly #folder: string;
  readonly #source: FileSource;
  #mount: { readonly state: string; readonly texts: FolderTexts; readonly changedMs: number } | undefined;
  #delivered: FolderTexts | undefined;
  #hasCaughtUp = false;
  #isWatched = false;
  #confirmedMs = 0;

  constructor(folder: string, source: FileSource) {
    this.#folder = folder;
    this.#source = source;
  }

  delivered(texts: FolderTexts, nowMs: number): void {
    if (this.#delivered === undefined || !isSameFolder(this.#delivered, texts)) this.#hasCaughtUp = false;
    this.#delivered = texts;
    this.confirmed(nowMs);
    this.#compare();
    this.#source.deliver(this.#folder, texts);
  }

  /** The version that was delivered last is current. */
  confirmed(nowMs: number): void {
    this.#isWatched = true;
    this.#confirmedMs = nowMs;
  }

  lost(): void {
    this.#isWatched = false;
    this.#choose();
  }

  /** Reads the mounted files if they have changed. Call it about once a second. */
  async poll(nowMs: number): Promise<void> {
    const state = await this.#state();
    if (state !== this.#mount?.state) {
      const texts = await this.#read();
      // The mount was swapped during the read: the next poll reads it again.
      if (texts === undefined || (await this.#state()) !== state) return;
      this.#mount = { state, texts, changedMs: nowMs };
      this.#compare();
    }
    this.#choose();
  }

  #compare(): void {
    if (this.#mount === undefined || this.#delivered === undefined) return;
    if (isSameFolder(this.#mount.texts, this.#delivered)) this.#hasCaughtUp = true;
  }

  #choose(): void {
    if (this.#isWatched || this.#mount === undefined || this.#delivered === undefined) return;
    if (isSameFolder(this.#mount.texts, this.#delivered)) return;
    const isNewer = this.#hasCaughtUp || this.#mount.changedMs - this.#confirmedMs > MAX_LAG_MS;
    if (!isNewer) return;
    this.#delivered = undefined;
    this.#source.withdraw(this.#folder);
  }

  async #state(): Promise<string> {
    const states = (await this.#names()).map((name) => stateOf(join(this.#folder, name)));
    return (await Promise.all(states)).join('\n');
  }

  async #read(): Promise<FolderTexts | undefined> {
    try {
      const names = await this.#names();
      const texts = names.map((name) => readFile(join(this.#folder, name), 'utf8'));
      return new Map((await Promise.all(texts)).map((text, index) => [names[index] ?? '', text]));
    } catch {
      return undefined;
    }
  }

  /** Without the kubelet's own entries, whose names begin with two dots. */
  async #names(): Promise<readonly string[]> {
    const names = await readdir(this.#folder).catch(() => []);
    return names.filter((name) => !name.startsWith('..'));
  }
}
