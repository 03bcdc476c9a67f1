/** What a value becomes if every alias in it is replaced by a copy of what it stands for. */
interface Extent {
  /** Mappings, lists and scalars. */
  readonly values: number;
  readonly depth: number;
}

/** As many values are always allowed: they take about 100 MiB where they are copied. */
const MIN_VALUES = 1_000_000;

/** Otherwise, values for each character of the text. Without aliases, a text has less than one. */
const VALUES_PER_CHARACTER = 2;

/** The parser allows 100 levels without aliases. Twice as many fit the stack of every reader. */
const MAX_DEPTH = 200;

/** The reason why a parsed text with aliases cannot be used. Undefined if it stays small and finite when they are expanded. */
export function expansionProblem(root: unknown, characters: number): string | undefined {
  const mostValues = Math.max(MIN_VALUES, VALUES_PER_CHARACTER * characters);
  const extents = new Map<object, Extent | 'open'>();
  const waiting = objectsIn([root]);
  for (let value = waiting.at(-1); value !== undefined; value = waiting.at(-1)) {
    const known = extents.get(value);
    const children: readonly unknown[] = Object.values(value);
    if (known === undefined) {
      extents.set(value, 'open');
      const objects = objectsIn(children);
      if (objects.some((one) => extents.get(one) === 'open')) return 'an alias contains itself';
      waiting.push(...objects.filter((one) => !extents.has(one)));
      continue;
    }
    waiting.pop();
    if (known !== 'open') continue;
    const extent = extentOf(children, extents);
    if (extent.depth > MAX_DEPTH) return `its aliases make it deeper than ${MAX_DEPTH} levels`;
    if (extent.values > mostValues) return `its aliases expand to more than ${mostValues} values`;
    extents.set(value, extent);
  }
  return undefined;
}

function objectsIn(values: readonly unknown[]): object[] {
  return values.filter((one) => typeof one === 'object' && one !== null);
}

function extentOf(children: readonly unknown[], extents: ReadonlyMap<unknown, Extent | 'open'>): Extent {
  let values = 1;
  let depth = 0;
  for (const one of children) {
    const extent = extents.get(one);
    values += extent === undefined || extent === 'open' ? 1 : extent.values;
    if (extent !== undefined && extent !== 'open') depth = Math.max(depth, extent.depth);
  }
  return { values, depth: depth + 1 };
}
