import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FileSource, type FolderTexts, isSameFolder } from '../reader/file-source.ts';
import { stateOf } from '../watch.ts';

/**
 * The kubelet updates a mount at most this long after the object has changed: it looks every 60 to 90 s, at objects
 * that it may have cached for some minutes (`configMapAndSecretChangeDetectionStrategy: Cache`).
 */
const MOST_LAG_MS = 300_000;

/**
 * One mounted ConfigMap or Secret, of which a watch delivers newer versions. Decides which of the two is in force:
 *
 * - What the watch delivered is in force as long as the watch lives.
 * - Without the watch, the mount is in force again once it shows a version that cannot be older than the delivered
 *   one: either it had shown the delivered one and changed again, or it changed so long after the watch was last
 *   confirmed that no lag explains it.
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

  /** What was delivered last is current. */
  confirmed(nowMs: number): void {
    this.#isWatched = true;
    this.#confirmedMs = nowMs;
  }

  lost(): void {
    this.#isWatched = false;
    this.#choose();
  }

  /** Looks at the mounted files; to be called every second or so. */
  async look(nowMs: number): Promise<void> {
    const state = await this.#state();
    if (state !== this.#mount?.state) {
      const texts = await this.#read();
      // A swap in between: the next look reads again.
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
    const isNewer = this.#hasCaughtUp || this.#mount.changedMs - this.#confirmedMs > MOST_LAG_MS;
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

  /** The kubelet's own entries begin with two dots. */
  async #names(): Promise<readonly string[]> {
    const names = await readdir(this.#folder).catch(() => []);
    return names.filter((name) => !name.startsWith('..'));
  }
}
