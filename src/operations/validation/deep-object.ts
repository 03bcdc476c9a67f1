import type { RawValue, Shape } from './parameter-value.ts';

const NEXT_ITEM = -1;

/** Depth limit. Real query parameters are not nested deeper. */
const MAX_DEPTH = 8;

/**
 * The steps of `filter[status][eq]` into the object `filter`: each is the name of a property, the index of an item, or the next item of a
 * list. `ids[]` and `ids[0]` are list items if the schema has a list.
 * Undefined if brackets are not balanced or the schema does not have the property.
 */
export function deepPath(name: string, shape: Shape): readonly (string | number)[] | undefined {
  const brackets = name.slice(name.indexOf('['));
  if (!/^(?:\[[^[\]]*\])+$/.test(brackets)) return undefined;
  const words = brackets.slice(1, -1).split('][');
  if (words.length > MAX_DEPTH) return undefined;
  const steps: (string | number)[] = [];
  let at: Shape | undefined = shape;
  for (const word of words) {
    if (at?.items !== undefined && /^\d*$/.test(word)) {
      steps.push(itemStep(word));
      at = at.items;
    } else {
      if (at !== undefined && !at.isOpen && !at.properties.has(word)) return undefined;
      steps.push(word);
      at = at?.properties.get(word) ?? at?.others;
    }
  }
  return steps;
}

function itemStep(index: string): number {
  return index === '' ? NEXT_ITEM : Number(index);
}

/** Inserts a value at the given steps. @returns false if it conflicts with a value that is already there */
export function insertDeep(tree: RawValue, steps: readonly (string | number)[], value: string): boolean {
  const [step, ...rest] = steps;
  if (step === undefined || typeof tree === 'string' || !('members' in tree)) return false;
  const { members, isList } = tree;
  if (isList !== (typeof step === 'number')) return false;
  // No index is negative.
  const key = step === NEXT_ITEM ? NEXT_ITEM - members.size : step;
  const existing = members.get(key);
  if (rest.length > 0) {
    const next = existing ?? container(rest);
    members.set(key, next);
    return insertDeep(next, rest, value);
  }
  if (existing !== undefined) return false;
  members.set(key, value);
  return true;
}

/** An empty container for the next step. */
export function container([step]: readonly (string | number)[]): RawValue {
  return { isList: typeof step === 'number', members: new Map() };
}
