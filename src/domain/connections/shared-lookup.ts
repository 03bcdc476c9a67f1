import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';

/** `dns.lookup`, with all addresses as its answer. */
type LookUp = (name: string, options: LookupOptions & { all: true }, answer: Answer) => void;
type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** A name, and whether it may have addresses of one family alone. */
interface Name {
  readonly waiting: Set<Answer>;
  /** The last answer, and when it came. */
  known: { readonly addresses: LookupAddress[]; readonly atMs: number } | undefined;
  /** Whether DNS has been silent for longer than connections wait. */
  isSilent: boolean;
}

/** How long a connection waits for DNS if an earlier answer is known. Less than any time-out for connecting. */
const PATIENCE_MS = 500;

/** How long an answer is used while DNS fails. Connections to an upstream look it up every five minutes, so that one in use has half of this left. */
const KEPT_MS = 600_000;

/** More than any configuration has. */
const MAX_NAMES = 1_000;

/**
 * Finds the addresses of names for connections, with one lookup for all connections to a name.
 *
 * `dns.lookup` takes a thread until DNS has answered, which can be ten seconds, and Node has two threads for it. If each connection to a
 * name that is not answered took one, nothing else could connect. While DNS is silent or fails, the last answer is used, for ten
 * minutes. A name that DNS says does not exist is forgotten.
 */
export class SharedLookup {
  readonly #names = new Map<string, Name>();
  readonly #lookUp: LookUp;
  readonly #nowMs: () => number;

  constructor(lookUp: LookUp, nowMs: () => number = () => performance.now()) {
    this.#lookUp = lookUp;
    this.#nowMs = nowMs;
  }

  /** As `dns.lookup`, for the option `lookup` of a connection. */
  readonly lookup: LookupFunction = (host, options, callback) => {
    this.#ask(host, options, (error, addresses) => {
      const [first] = addresses;
      if (error !== null || first === undefined)
        callback(error ?? new Error(`${host} has no address`), '', 0);
      else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };

  #ask(host: string, options: LookupOptions, answer: Answer): void {
    const key = `${host} ${options.family ?? 0} ${options.hints ?? 0}`;
    const name = this.#names.get(key) ?? this.#newName(key);
    const kept = this.#keptBy(name);
    if (name.isSilent && kept !== undefined) {
      process.nextTick(answer, null, kept);
      return;
    }
    name.waiting.add(answer);
    if (name.waiting.size === 1 && !name.isSilent) this.#begin(name, host, options);
  }

  #begin(name: Name, host: string, options: LookupOptions): void {
    const timer = setTimeout(() => {
      name.isSilent = true;
      const kept = this.#keptBy(name);
      if (kept !== undefined) settle(name, null, kept);
    }, PATIENCE_MS);
    this.#lookUp(host, { ...options, all: true }, (error, addresses) => {
      clearTimeout(timer);
      name.isSilent = false;
      if (error === null) name.known = { addresses, atMs: this.#nowMs() };
      else if (error.code === 'ENOTFOUND') name.known = undefined;
      const kept = this.#keptBy(name);
      if (kept === undefined) settle(name, error, addresses ?? []);
      else settle(name, null, kept);
    });
  }

  /** The last answer, unless it is too old. */
  #keptBy({ known }: Name): LookupAddress[] | undefined {
    return known !== undefined && this.#nowMs() - known.atMs < KEPT_MS ? known.addresses : undefined;
  }

  #newName(key: string): Name {
    const [oldest] = this.#names.keys();
    if (this.#names.size >= MAX_NAMES && oldest !== undefined) this.#names.delete(oldest);
    const name: Name = { waiting: new Set(), known: undefined, isSilent: false };
    this.#names.set(key, name);
    return name;
  }
}

function settle({ waiting }: Name, error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
  const answers = [...waiting];
  waiting.clear();
  for (const answer of answers) answer(error, addresses);
}

/** Of this process. */
export const sharedLookup = new SharedLookup(lookup).lookup;
