import type { RawValue, Shape } from './texts.ts';

/** One step into an object: the name of a property, or the next item of a list. */
type Step = string | typeof NEXT_ITEM;

const NEXT_ITEM = Symbol('next item');

/** Deeper than any real API nests what it takes in a query. */
const MAX_DEPTH = 8;

/**
 * The steps that `filter[status][eq]` takes into the object `filter`; `ids[]` and `ids[0]` are items where the
 * schema has a list. Undefined where brackets do not pair or where the schema has no such property.
 */
export function deepPath(name: string, shape: Shape): readonly Step[] | undefined {
  const brackets = name.slice(name.indexOf('['));
  if (!/^(?:\[[^[\]]*\])+$/.test(brackets)) return undefined;
  const words = brackets.slice(1, -1).split('][');
  if (words.length > MAX_DEPTH) return undefined;
  const steps: Step[] = [];
  let at: Shape | undefined = shape;
  for (const word of words) {
    if (at?.items !== undefined && /^\d*$/.test(word)) {
      steps.push(NEXT_ITEM);
      at = at.items;
    } else {
      if (at !== undefined && !at.isOpen && !at.properties.has(word)) return undefined;
      steps.push(word);
      at = at?.properties.get(word);
    }
  }
  return steps;
}

/** Puts a value where the steps lead. @returns false where something stands already that it does not fit beside */
export function insertDeep(tree: RawValue, steps: readonly Step[], value: string): boolean {
  const [step, ...rest] = steps;
  if (step === undefined || typeof tree === 'string') return false;
  if (step === NEXT_ITEM) return insertItem(tree, rest, value);
  if (Array.isArray(tree)) return false;
  const held = tree[step];
  if (rest.length === 0) {
    if (held !== undefined) return false;
    tree[step] = value;
    return true;
  }
  const under = held ?? container(rest);
  tree[step] = under;
  return insertDeep(under, rest, value);
}

function insertItem(
  tree: RawValue[] | { [key: string]: RawValue },
  rest: readonly Step[],
  value: string,
): boolean {
  if (!Array.isArray(tree)) return false;
  if (rest.length === 0) {
    tree.push(value);
    return true;
  }
  const item = container(rest);
  tree.push(item);
  return insertDeep(item, rest, value);
}

/** What the next of these steps goes into: a list for an item, else an object without inherited names. */
export function container(steps: readonly Step[]): RawValue {
  return steps[0] === NEXT_ITEM ? [] : Object.create(null);
}
