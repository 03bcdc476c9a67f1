/**
 * Finds refusals by the ids of their requests. A page of an archive has 16 bytes for each request of an hour: a part of a hash of its id, the
 * identity of the refusal, and its time. When a page is full, later entries go to one of sixteen further pages, by the hash. So a flood
 * makes few calls, and a search reads one page for each hour or a few.
 */
import type { Archive } from '../../store/shared-store.ts';
import { answered } from '../fleet/boards.ts';

export const HOUR_MS = 3_600_000;

/** How long a refusal can be found. */
export const KEPT_HOURS = 24;

/** Everything of an hour is kept until it is a day old. */
export const LIFE_MS = (KEPT_HOURS + 2) * HOUR_MS;

export const ENTRY_BYTES = 16;
const HASH_BYTES = 6;
const NONE = Buffer.alloc(0);

/** What is larger is not added to. */
const PAGE_BYTES = 1_048_576;

/** Digits of the hash. */
const DEEPEST = 8;

/** A refused request: its process, its number there, and when it was refused. */
export interface RefusedId {
  readonly processTag: number;
  readonly number: number;
  readonly atMs: number;
}

/** 48 bits of an id, which differ for almost all. FNV-1a, twice: nobody needs to be kept from finding equal ones. */
function writeHash(target: Buffer, at: number, requestId: string): void {
  let [first, second] = [0x811c9dc5, 0x01000193];
  for (let index = 0; index < requestId.length; index++) {
    const code = requestId.charCodeAt(index);
    first = Math.imul(first ^ code, 0x01000193);
    second = Math.imul(second ^ code, 0x85ebca6b) ^ (second >>> 13);
  }
  write32(target, at, first);
  write16(target, at + 4, second ^ (second >>> 16));
}

/** Faster than the methods of a Buffer, which look at each value first. */
function write32(target: Buffer, at: number, value: number): void {
  write16(target, at, value >>> 16);
  write16(target, at + 2, value);
}

function write16(target: Buffer, at: number, value: number): void {
  target[at] = value >>> 8;
  target[at + 1] = value;
}

/** Writes the entry of a request. `target` has 16 bytes from `at` on. */
export function writeEntry(target: Buffer, at: number, requestId: string, id: RefusedId): void {
  writeHash(target, at, requestId);
  // Much faster than a remainder, which is worked out bit by bit above 32 bits.
  const inHour = id.atMs - hourOf(id.atMs) * HOUR_MS;
  target[at + 6] = id.processTag >>> 16;
  write16(target, at + 7, id.processTag);
  write32(target, at + 9, id.number);
  target[at + 13] = inHour >>> 16;
  write16(target, at + 14, inHour);
}

/** The entries of one process. */
export class IdIndex {
  readonly #archive: Archive;
  /** Names of pages that are full. */
  readonly #full = new Set<string>();

  constructor(archive: Archive) {
    this.#archive = archive;
  }

  /** Adds the entries of an hour. Resolves to those that could not be written. */
  async add(hour: number, entries: Buffer): Promise<Buffer> {
    const pages = this.#full.has(pageName(hour, '', 0))
      ? this.#grouped(hour, entries)
      : [[pageName(hour, '', 0), entries] as const];
    const failed = new Map(pages);
    const appended = pages.map(([name, bytes]) =>
      this.#archive.append(name, bytes, LIFE_MS).then(
        (length) => {
          failed.delete(name);
          if (length >= PAGE_BYTES) this.#full.add(name);
        },
        () => undefined,
      ),
    );
    // One time limit for all: in a flood there are hundreds of pages.
    await answered(Promise.all(appended));
    return Buffer.concat([...failed.values()]);
  }

  /** The entries of each page in one piece. */
  #grouped(hour: number, entries: Buffer): readonly (readonly [string, Buffer])[] {
    const nameOf = this.#namesIn(hour);
    const count = entries.length / ENTRY_BYTES;
    const names = new Float64Array(count);
    // Where there is one page, all entries are on it.
    let [lastName, lastPage] = [0, { length: 0, bytes: NONE }];
    const pages = new Map<number, typeof lastPage>();
    const pageOf = (index: number) => {
      if (names[index] === lastName) return lastPage;
      lastName = names[index] ?? 0;
      lastPage = pages.get(lastName) ?? { length: 0, bytes: NONE };
      pages.set(lastName, lastPage);
      return lastPage;
    };
    for (let index = 0; index < count; index++) {
      names[index] = nameOf(entries.readUInt32BE(index * ENTRY_BYTES));
      pageOf(index).length += ENTRY_BYTES;
    }
    for (const page of pages.values()) {
      page.bytes = Buffer.allocUnsafe(page.length);
      page.length = 0;
    }
    for (let index = 0; index < count; index++) {
      const page = pageOf(index);
      const from = index * ENTRY_BYTES;
      for (let byte = from; byte < from + ENTRY_BYTES; byte++) page.bytes[page.length++] = entries[byte] ?? 0;
    }
    return [...pages].map(([name, { bytes }]) => {
      const digits = name.toString(16).slice(1);
      return [pageName(hour, digits, digits.length), bytes] as const;
    });
  }

  /** The requests with this id that were refused within a day of `nowMs`, the last one first. Rejects if the archive cannot be read. */
  async find(requestId: string, nowMs: number): Promise<readonly RefusedId[]> {
    const wanted = Buffer.alloc(HASH_BYTES);
    writeHash(wanted, 0, requestId);
    const hours = Array.from({ length: KEPT_HOURS + 1 }, (_, ago) => hourOf(nowMs) - ago);
    const found = (await Promise.all(hours.map((hour) => this.#findIn(hour, wanted)))).flat();
    const fromMs = nowMs - KEPT_HOURS * HOUR_MS;
    return found.filter(({ atMs }) => atMs >= fromMs).sort((a, b) => b.atMs - a.atMs);
  }

  /** Drops what is known of earlier hours. */
  forgetBefore(nowMs: number): void {
    const hour = hourOf(nowMs) - 1;
    for (const name of this.#full) if (Number.parseInt(name, 10) < hour) this.#full.delete(name);
  }

  /** The page of a hash: its first digits, after a 1 that says how many there are. */
  #namesIn(hour: number): (hash: number) => number {
    const full = new Set<number>();
    const begin = pageName(hour, '', 0);
    for (const name of this.#full) {
      if (name.startsWith(begin)) full.add(Number.parseInt(`1${name.slice(begin.length + 1)}`, 16));
    }
    return (hash) => {
      let [digits, name] = [0, 1];
      while (digits < DEEPEST && full.has(name)) {
        digits++;
        name = 16 ** digits + (hash >>> (32 - 4 * digits));
      }
      return name;
    };
  }

  async #findIn(hour: number, wanted: Buffer): Promise<readonly RefusedId[]> {
    const hash = wanted.toString('hex');
    const found: RefusedId[] = [];
    for (let digits = 0; digits <= DEEPEST; digits++) {
      const page = await this.#archive.read(pageName(hour, hash, digits));
      for (let at = page.indexOf(wanted); at !== -1; at = page.indexOf(wanted, at + 1)) {
        if (at % ENTRY_BYTES === 0 && at + ENTRY_BYTES <= page.length) found.push(entryAt(page, at, hour));
      }
      if (page.length < PAGE_BYTES) break;
    }
    return found;
  }
}

export function hourOf(atMs: number): number {
  return Math.floor(atMs / HOUR_MS);
}

function pageName(hour: number, hash: string, digits: number): string {
  return `${hour}:ids${digits === 0 ? '' : `-${hash.slice(0, digits)}`}`;
}

function entryAt(page: Buffer, at: number, hour: number): RefusedId {
  return {
    processTag: page.readUIntBE(at + 6, 3),
    number: page.readUInt32BE(at + 9),
    atMs: hour * HOUR_MS + page.readUIntBE(at + 13, 3),
  };
}
