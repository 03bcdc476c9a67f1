import type { Logger } from 'pino';
import type { Identities } from '../../config/files/identities.ts';
import type { Settings } from '../../config/settings/settings.ts';
import { SHOWN_DIGITS, shownTarget } from '../../facts/revocation-message.ts';
import { isSameTarget, publishRevocation, publishUndoing } from '../../facts/revocation-record.ts';
import { noteOnTarget } from '../../facts/revocation-target.ts';
import type { Revocation, RevocationReason, Revoked } from '../../facts/revocations.ts';
import type { MessageRecord, Published } from '../../store/shared-store.ts';
import { ActionRefused } from '../action.ts';
import { audited } from '../shared-change.ts';
import { type RevocationRequest, TARGET_NAMES, targetOrRefusal } from './request.ts';
import { type RevocationTries, type Tries, type Try, triedKey } from './tries.ts';

/** A revocation as an operator sees it. */
export type ShownRevocation = ReturnType<typeof shown> & {
  /** When and from which address it was last tried; null if it never was. */
  readonly lastTried: ReturnType<typeof shownTry>;
};

/** A revocation, or an undoing, that has just been made; `notes`: what the operator should know. */
type MadeRevocation = ReturnType<typeof shown> & { readonly notes: readonly string[] };

/** The revocations of all replicas. */
export interface SharedRevocations {
  /** Those that this replica knows, the undone included. */
  remembered(): readonly Revocation[];
  /** How long ago those of all replicas were read. */
  ageSeconds(): number;
  /** Puts one in force at this replica. */
  apply(revocation: Revocation): void;
  /** Rejects if Redis cannot be reached, or refuses. */
  withRecord<T>(use: (record: MessageRecord) => Promise<T>): Promise<T>;
}

interface RevocationSources {
  readonly log: Logger;
  readonly identity: Settings['identity'];
  /** Undefined with the memory store, which has no channel to other processes. */
  readonly shared: SharedRevocations | undefined;
  readonly tries: Pick<RevocationTries, 'latest'>;
  identities(): Pick<Identities, 'tokens' | 'principals'>;
}

const DIGEST_START = new RegExp(`^(?:sha256:)?([0-9a-f]{${SHOWN_DIGITS},64})$`, 'i');

/** With the memory store, revocations would be lost when the process ends. */
class NotShared extends ActionRefused {
  override readonly name = 'NotShared';
  override readonly status = 409;
}

/** Lists, makes and undoes revocations. Each action writes one audit line. A token appears in none of them. */
export class RevocationActions {
  readonly #sources: RevocationSources;

  constructor(sources: RevocationSources) {
    this.#sources = sources;
  }

  /** Those in force at this replica, the latest first. */
  async list(): Promise<readonly ShownRevocation[]> {
    const inForce = this.#inForce().sort((a, b) => b.atMs - a.atMs);
    const tries: Tries = inForce.length === 0 ? new Map() : await this.#sources.tries.latest();
    return inForce.map((one) => ({ ...shown(one), lastTried: shownTry(tries.get(triedKey(one))) }));
  }

  /**
   * Revokes a target at every replica.
   *
   * @throws ActionRefused for a principal that does not exist
   */
  async revoke(request: RevocationRequest): Promise<MadeRevocation> {
    const shared = this.#shared();
    const { revoked, forMs, reason } = request;
    const { identity, identities } = this.#sources;
    const note = targetOrRefusal(() => noteOnTarget(revoked, identity, identities(), TARGET_NAMES));
    let isLasting: boolean | undefined;
    const made = await this.#change('revoked', revoked, reason, async () =>
      shared.withRecord(async (record) => {
        const known = shared.remembered().filter((one) => isSameTarget(one.revoked, revoked));
        const published = await publishRevocation(record, revoked, forMs, { known, reason });
        isLasting = await record.isLasting();
        return published;
      }),
    );
    const lost =
      'This Redis keeps no append-only file: a revocation is lost if Redis and every gateway restart together.';
    const notes = [...(note === undefined ? [] : [note]), ...(isLasting === false ? [lost] : [])];
    return { ...made, notes: [...notes, ...made.notes] };
  }

  /** As `undoToken`, for a principal. */
  async undoPrincipal(id: string, reason: RevocationReason): Promise<MadeRevocation> {
    return this.#undo(({ revoked }) => revoked.kind === 'principal' && revoked.id === id, reason);
  }

  /**
   * Undoes the revocation of a token at every replica.
   *
   * @param digest of the token, in hex, with or without `sha256:`; its first 16 digits are enough
   * @throws ActionRefused where there is no such revocation
   */
  async undoToken(digest: string, reason: RevocationReason): Promise<MadeRevocation> {
    const [, digits] = DIGEST_START.exec(digest) ?? [];
    if (digits === undefined) {
      throw new ActionRefused(
        `Name a token by at least ${SHOWN_DIGITS} digits of its SHA-256, as the list does.`,
      );
    }
    const start = digits.toLowerCase();
    return this.#undo(
      ({ revoked }) => revoked.kind === 'token' && revoked.digestHex.startsWith(start),
      reason,
    );
  }

  async #undo(
    isMeant: (revocation: Revocation) => boolean,
    reason: RevocationReason,
  ): Promise<MadeRevocation> {
    const shared = this.#shared();
    const [current, ...others] = this.#inForce().filter(isMeant);
    if (current === undefined) throw new ActionRefused('There is no such revocation: it is not in the list.');
    if (others.length > 0) throw new ActionRefused('Several tokens match: give more digits of the SHA-256.');
    const { revoked } = current;
    return this.#change('revocation undone', revoked, reason, async () => {
      const undoing = await shared.withRecord((record) =>
        publishUndoing(record, revoked, { known: [current], reason }),
      );
      if (undoing === undefined) throw new ActionRefused('It has just been undone.');
      return undoing;
    });
  }

  /** Makes a change, puts it in force here, and returns it. */
  async #change(
    action: string,
    revoked: Revoked,
    reason: RevocationReason,
    publish: () => Promise<Published & { readonly revocation: Revocation }>,
  ): Promise<MadeRevocation> {
    let made: Revocation | undefined;
    const details = () => ({
      revocation: { ...shownTarget(revoked), ...(made && { until: shown(made).until }) },
    });
    const notes = await audited(this.#sources.log, { action, ...reason, details }, async () => {
      const published = await publish();
      made = published.revocation;
      return published;
    });
    if (made === undefined) throw new Error('a change that succeeded made nothing');
    this.#shared().apply(made);
    return { ...shown(made), notes };
  }

  #inForce(): Revocation[] {
    return this.#shared()
      .remembered()
      .filter(({ isRemoved }) => !isRemoved);
  }

  #shared(): SharedRevocations {
    const { shared } = this.#sources;
    if (shared !== undefined) return shared;
    throw new NotShared(
      'The store is the memory store, and revocations travel through Redis: restart the gateway, or take the token out of ' +
        'the identities file, which is read again while it runs.',
    );
  }
}

function shown({ revoked, atMs, untilMs, reason }: Revocation) {
  return {
    ...shownTarget(revoked),
    at: new Date(atMs).toISOString(),
    /** When every replica forgets it. */
    until: new Date(untilMs).toISOString(),
    /** Null for those of `weir revoke`. */
    why: reason?.why ?? null,
    by: reason?.by ?? null,
  };
}

export function shownTry(last: Try | undefined) {
  return last === undefined ? null : { at: new Date(last.atMs).toISOString(), from: last.address };
}
