import type { RawValue, Shape } from './parameter-value.ts';

/** One step into an object: the name of a property, or the next item of a list. */
type DeepStep = string | typeof NEXT_ITEM;

const NEXT_ITEM = Symbol('next item');

/** Depth limit. Real query parameters are not nested deeper. */
const MAX_DEPTH = 8;

/**
 * The steps of `filter[status][eq]` into the object `filter`. `ids[]` and `ids[0]` are list items if the schema has a list.
 * Undefined if brackets are not balanced or the schema does not have the property.
 */
export function deepPath(name: string, shape: Shape): readonly DeepStep[] | undefined {
  const brackets = name.slice(name.indexOf('['));
  if (!/^(?:\[[^[\]]*\])+$/.test(brackets)) return undefined;
  const words = brackets.slice(1, -1).split('][');
  if (words.length > MAX_DEPTH) return undefined;
  const steps: DeepStep[] = [];
  let at: Shape | undefined = shape;
  for (const word of words) {
    if (at?.items !== undefined && /^\d*$/.test(word)) {
      steps.push(NEXT_ITEM);
      at = at.items;
    } else {
      if (at !== undefined && !at.isOpen && !at.properties.has(word)) return undefined;
      steps.push(word);
      at = at?.properties.get(word) ?? at?.others;
    }
  }
  return steps;
}

/** Inserts a value at the given steps. @returns false if it conflicts with a value that is already there */
export function insertDeep(tree: RawValue, steps: readonly DeepStep[], value: string): boolean {
  const [step, ...rest] = steps;
  if (step === undefined || typeof tree === 'string') return false;
  if (step === NEXT_ITEM) return insertItem(tree, rest, value);
  if (Array.isArray(tree)) return false;
  const existing = tree[step];
  if (rest.length === 0) {
    if (existing !== undefined) return false;
    tree[step] = value;
    return true;
  }
  const next = existing ?? container(rest);
  tree[step] = next;
  return insertDeep(next, rest, value);
}

function insertItem(
  tree: RawValue[] | { [key: string]: RawValue },
  rest: readonly DeepStep[],
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

/** An empty container for the next step: a list for an item, otherwise an object without a prototype. */
export function container(steps: readonly DeepStep[]): RawValue {
  return steps[0] === NEXT_ITEM ? [] : Object.create(null);
}
