import { type Identities, ownersIn } from '../../config/files/identities/parse-identities.ts';
import type { Principal } from '../../domain/caller.ts';
import { type OverrideSection, SCOPES } from '../../domain/limits/scopes.ts';
import type { BlockScope } from '../../facts/blocks.ts';
import type { Configuration } from '../configuration.ts';

/** The identities of the files, of the credentials' own included, as they are replaced by reloads. */
export class KnownIdentities {
  readonly #files: Configuration['files'];
  readonly #credentials: Map<number, Identities>;
  #identities: Identities;
  /** What was read of the files, until one is replaced. */
  #read: {
    readonly from: readonly Identities[];
    readonly owners: Map<OverrideSection, ReadonlySet<string>>;
  } = { from: [], owners: new Map() };

  constructor({ files, identities, credentials }: Configuration) {
    this.#files = files;
    this.#identities = identities;
    const own = credentials.flatMap((one, index) =>
      one === undefined ? [] : [[index, one.identities] as const],
    );
    this.#credentials = new Map(own);
  }

  replace(identities: Identities): void {
    this.#identities = identities;
  }

  /** Of one of the `credentials`. */
  replaceCredential(index: number, identities: Identities): void {
    this.#credentials.set(index, identities);
  }

  /** The ids of a scope that the files have; undefined for addresses. */
  named(scope: BlockScope): ReadonlySet<string> | undefined {
    const all = this.all;
    if (all.some((one, index) => one !== this.#read.from[index]))
      this.#read = { from: all, owners: new Map() };
    const section = SCOPES[scope].overrides;
    const known = this.#read.owners.get(section) ?? ownersIn(section, all);
    if (known !== undefined) this.#read.owners.set(section, known);
    return known;
  }

  /** A principal of the files, which has its Account or Organization. */
  principalOf(id: string): Principal | undefined {
    return this.all.map(({ principals }) => principals.get(id)).find((one) => one !== undefined);
  }

  get all(): readonly Identities[] {
    return [this.#identities, ...this.#credentials.values()];
  }

  /** Whether nobody exists whom the files do not list. */
  get areListed(): boolean {
    const { identities, credentials } = this.#files;
    return (
      identities !== undefined &&
      credentials.every((one) => one === undefined || one.identities !== undefined)
    );
  }
}
