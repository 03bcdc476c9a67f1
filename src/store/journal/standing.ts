import type { Journal } from './journal.ts';
import type { AskedRecovery } from './recovery-tables.ts';

/** The id of no server. */
const NOWHERE = '';

/**
 * Whether the store may lack what this replica has counted, although its mark is right: after a recovery that did not wait for this replica,
 * and at a server whose counts were put back before others counted elsewhere. test/model shows why each of these is needed.
 */
export class Standing {
  readonly #journal: Pick<Journal, 'added'>;
  readonly #startedMs = performance.now();
  /** The server that charges go to, or went to last. Undefined in a Cluster. */
  #server: string | undefined;
  #isConnected = false;
  #hasAttended = false;
  /** The server that has all that this replica has counted, except what it has counted there since. */
  #inLineWith: string | undefined;
  /** Whether counts were put back at another server since. */
  #isBehind = false;
  #isLeftOut = false;
  #addedBefore = 0;
  #hadAdded = false;

  constructor(journal: Pick<Journal, 'added'>) {
    this.#journal = journal;
  }

  get isInDoubt(): boolean {
    if (this.#isLeftOut) return true;
    return this.#isConnected && this.#inLineWith !== undefined && this.#inLineWith !== this.#server;
  }

  arrived(server: string): void {
    this.#server = server;
    this.#isConnected = true;
    if (this.#hasAttended) this.#inLineWith ??= server;
  }

  left(): void {
    // If it comes back, counts of others may be missing there.
    if (this.isInDoubt || this.#isBehind) this.#inLineWith = NOWHERE;
    this.#isConnected = false;
  }

  /** With the last recovery, as it was found first. */
  started({ reading, server, askedSeconds }: AskedRecovery): void {
    this.#hasAttended = true;
    this.#inLineWith = server || this.#server;
    const isLater = askedSeconds !== null && askedSeconds * 1_000 < performance.now() - this.#startedMs;
    this.#isLeftOut = reading !== null && isLater && this.#journal.added > 0;
  }

  /** What is counted from now on may not be written when a recovery reads. */
  writing({ server }: AskedRecovery): void {
    const { added } = this.#journal;
    this.#hadAdded ||= added > this.#addedBefore;
    this.#addedBefore = added;
    // What a replica counts at another server meanwhile is not in what is put back.
    if (!server) return;
    this.#isBehind = this.#isConnected && server !== this.#server;
    if (!this.#isBehind) this.#inLineWith = server;
  }

  /**
   * @param recovery as it was found after everything was written
   * @param flushed the recovery for which this replica had written before
   */
  written({ asked, reading, server }: AskedRecovery, flushed: number): void {
    const isInTime = reading === null || reading < asked;
    // In a Cluster, it may be of other slots than one before it that did not wait.
    if (isInTime && server && server === this.#server) this.#isLeftOut = false;
    else if (reading !== null && reading > flushed) this.#isLeftOut ||= this.#hadAdded;
    this.#hadAdded = false;
  }

  /** What was in doubt is being put back. What is written too late for that is in doubt again. */
  restoring(): void {
    this.#isLeftOut = false;
  }

  /** It was not put back. */
  leftOut(): void {
    this.#isLeftOut = true;
  }
}
