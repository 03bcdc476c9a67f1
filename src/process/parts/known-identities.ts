import { type Identities, ownersIn } from '../../config/files/identities.ts';
import { SCOPES } from '../../domain/limits/scopes.ts';
import type { BlockScope } from '../../facts/blocks.ts';
import { knownTogether } from '../../facts/revocation-target.ts';
import type { Configuration } from '../configuration.ts';

/** The identities of the files, of the credentials' own included, as they are replaced by reloads. */
export class KnownIdentities {
  readonly #files: Configuration['files'];
  readonly #credentials: Map<number, Identities>;
  #identities: Identities;

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

  /** The ids of a section; undefined where others may exist, because files do not list all. */
  owners(section: Parameters<typeof ownersIn>[0]): ReadonlySet<string> | undefined {
    return this.#areListed ? ownersIn(section, this.#all) : undefined;
  }

  /** As `owners`, by scope. */
  ids(scope: BlockScope): ReadonlySet<string> | undefined {
    return this.owners(SCOPES[scope].overrides);
  }

  together(): ReturnType<typeof knownTogether> {
    return knownTogether(this.#all);
  }

  /** The Principal Account of a Person of the identities file. */
  homeOf(person: string): string | undefined {
    return this.#identities.principals.get(person)?.account;
  }

  get #all(): readonly Identities[] {
    return [this.#identities, ...this.#credentials.values()];
  }

  get #areListed(): boolean {
    const { identities, credentials } = this.#files;
    return (
      identities !== undefined &&
      credentials.every((one) => one === undefined || one.identities !== undefined)
    );
  }
}
