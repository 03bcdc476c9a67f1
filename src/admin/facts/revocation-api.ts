import type { Identities } from '../../config/files/identities/parse-identities.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import type { Settings } from '../../config/settings/settings.ts';
import type { Making } from '../../facts/fact-record.ts';
import type { FollowedFacts } from '../../facts/followed-facts.ts';
import type { ChangeReason } from '../../facts/operator-facts.ts';
import { SHOWN_DIGITS, shownTarget } from '../../facts/revocation-message.ts';
import { noteOnTarget } from '../../facts/revocation-target.ts';
import { type Revocation, type Revoked, revoking, undoing } from '../../facts/revocations.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import { ActionRefused, readReason } from '../action.ts';
import type { FactApi } from './fact-api.ts';
import { changeFacts } from './fact-change.ts';
import { readRevocationRequest, TARGET_NAMES, targetOrRefusal } from './revocation-request.ts';
import { type RevocationTries, shownTry, type Try, triedKey } from './tries.ts';

/** A revocation as an operator sees it. */
export type ShownRevocation = ReturnType<typeof shown> & {
  /** When and from which address it was last tried; null if it never was. */
  readonly lastTried: ReturnType<typeof shownTry>;
};

/** A revocation, or an undoing, that has just been made; `notes`: what the operator should know. */
type MadeRevocation = ReturnType<typeof shown> & { readonly notes: readonly string[] };

const DIGEST_START = new RegExp(`^(?:sha256:)?([0-9a-f]{${SHOWN_DIGITS},64})$`, 'i');

/** With the memory store, revocations would be lost when the process ends. */
class NotShared extends ActionRefused {
  override readonly name = 'NotShared';
  override readonly status = 409;
}

/** Lists, makes and undoes revocations. Each change writes one audit line. A token appears in none of them. */
export class RevocationApi implements FactApi {
  readonly path = '/revocations';
  readonly title = 'The revocations';
  readonly #sources;

  constructor(sources: {
    readonly facts: FollowedFacts<Revocation>;
    readonly log: Changes;
    readonly identity: Settings['identity'];
    readonly tries: RevocationTries;
    identities(): readonly Identities[];
  }) {
    this.#sources = sources;
  }

  readonly routes: FactApi['routes'] = [
    { method: 'POST', path: '/revocations', change: async ({ body }) => this.#revoke(body) },
    {
      method: 'DELETE',
      path: '/revocations/tokens/:id',
      change: async ({ id, query }) => this.#undoToken(id, reasonIn(query)),
    },
    {
      method: 'DELETE',
      path: '/revocations/principals/:id',
      change: async ({ id, query }) => this.#undoPrincipal(id, reasonIn(query)),
    },
  ];

  get isRead(): boolean {
    return this.#sources.facts.isRead;
  }

  get ageSeconds(): number {
    return this.#sources.facts.ageSeconds;
  }

  /** Those in force at this replica, the latest first. */
  async list(): Promise<readonly ShownRevocation[]> {
    const inForce = this.#inForce().toSorted((a, b) => b.atMs - a.atMs);
    const tries = inForce.length === 0 ? new Map<string, Try>() : await this.#sources.tries.latest();
    return inForce.map((one) => ({ ...shown(one), lastTried: shownTry(tries.get(triedKey(one))) }));
  }

  /** Revokes a target at every replica. Rejects with an ActionRefused for a principal that does not exist. */
  async #revoke(body: unknown): Promise<MadeRevocation> {
    const { revoked, forMs, reason } = readRevocationRequest(body);
    const facts = this.#facts();
    const { identity, identities } = this.#sources;
    const note = targetOrRefusal(() => noteOnTarget(revoked, identity, identities(), TARGET_NAMES));
    const made = await this.#change('revoked', revoked, reason, revoking(revoked, forMs, reason));
    const lost =
      'This Redis keeps no append-only file: a revocation is lost if Redis and every gateway restart together.';
    const notes = [
      ...(note === undefined ? [] : [note]),
      ...((await facts.isLasting()) === false ? [lost] : []),
    ];
    return { ...made, notes: [...notes, ...made.notes] };
  }

  /** As `#undoToken`, for a principal. */
  async #undoPrincipal(id: string, reason: ChangeReason): Promise<MadeRevocation> {
    return this.#undo(({ revoked }) => revoked.kind === 'principal' && revoked.id === id, reason);
  }

  /**
   * Undoes the revocation of a token at every replica. Rejects with an ActionRefused where there is no such revocation.
   *
   * @param digest of the token, in hex, with or without `sha256:`; its first 16 digits are enough
   */
  async #undoToken(digest: string, reason: ChangeReason): Promise<MadeRevocation> {
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

  async #undo(isMeant: (revocation: Revocation) => boolean, reason: ChangeReason): Promise<MadeRevocation> {
    const [current, ...others] = this.#inForce().filter(isMeant);
    if (current === undefined) throw new ActionRefused('There is no such revocation: it is not in the list.');
    if (others.length > 0) throw new ActionRefused('Several tokens match: give more digits of the SHA-256.');
    const { revoked } = current;
    const { make, ...making } = undoing(revoked, reason);
    return this.#change('revocation undone', revoked, reason, {
      ...making,
      make(atMs, latest) {
        const made = make(atMs, latest);
        if (made.length === 0) throw new ActionRefused('It has just been undone.');
        return made;
      },
    });
  }

  async #change(
    action: string,
    revoked: Revoked,
    { why, by }: ChangeReason,
    making: Making<Revocation>,
  ): Promise<MadeRevocation> {
    const { made, notes } = await changeFacts(this.#facts(), this.#sources.log, {
      ...making,
      action,
      why,
      by,
      details: ([one] = []) => ({
        revocation: { ...shownTarget(revoked), ...(one && { until: shown(one).until }) },
      }),
    });
    const [revocation] = made;
    if (revocation === undefined) throw new Error('a change that succeeded made nothing');
    return { ...shown(revocation), notes };
  }

  #inForce(): readonly Revocation[] {
    const { known, nowMs } = this.#facts();
    return known.inForce(nowMs);
  }

  #facts(): FollowedFacts<Revocation> {
    const { facts } = this.#sources;
    if (facts.isShared) return facts;
    throw new NotShared(
      'The store is the memory store, and revocations travel through Redis: restart the gateway, or take the token out of ' +
        'the identities file, which is read again while it runs.',
    );
  }
}

function reasonIn(query: unknown): ChangeReason {
  const { why, by } = isMapping(query) ? query : {};
  return readReason(why, by);
}

function shown({ revoked, atMs, untilMs, reason }: Revocation) {
  return {
    ...shownTarget(revoked),
    at: new Date(atMs).toISOString(),
    /** When every replica forgets it. */
    until: new Date(untilMs).toISOString(),
    /** Null for a revocation by `weir revoke`. */
    why: reason?.why ?? null,
    by: reason?.by ?? null,
  };
}
