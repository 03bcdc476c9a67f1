import type { Operation } from '../request-context.ts';
import { STRICTNESS } from './route-index.ts';

/** More than an API has. Clients choose the paths, so a set of operations could otherwise have any number. */
const MAX_KNOWN = 1_000;

/** The operations that stand for paths with several meanings, so that each has one identity. */
export class CombinedOperations {
  readonly #known = new Map<string, Operation>();

  /**
   * The operation that a request is charged as when its path may mean each of these: with the highest cost, the strictest access and the
   * limits of all. It is validated as the first one, if that is listed.
   *
   * @param meanings one or more
   */
  of(meanings: readonly [Operation, ...Operation[]]): Operation {
    const [first] = meanings;
    if (meanings.every((one) => one === first)) return first;
    const key = meanings.map(({ id }) => id).join('\n');
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const combined = combine(meanings);
    if (this.#known.size < MAX_KNOWN) this.#known.set(key, combined);
    return combined;
  }
}

function combine(meanings: readonly [Operation, ...Operation[]]): Operation {
  const costliest = meanings.reduce((one, other) => (preferred(one, other) ? one : other));
  const strictest = meanings.reduce((one, other) =>
    STRICTNESS[one.access] >= STRICTNESS[other.access] ? one : other,
  );
  const { access } = strictest;
  const cost = Math.max(...meanings.map((one) => one.cost));
  const [first] = meanings;
  const { rules } = first.listed ? first : costliest;
  return { ...costliest, cost, access, rules, also: meanings.filter((one) => one !== costliest) };
}

/** An operation that is not listed gives its name to nothing: no limit can name it. */
function preferred(one: Operation, other: Operation): boolean {
  return one.listed === other.listed ? one.cost >= other.cost : one.listed;
}
