/**
 * Finds the other paths that a known router may serve at a path with a dot in it. A format suffix (`/reports.json`) is left out by
 * Rails, Django REST Framework, Spring and ASP.NET, and the name of a script (`/index.php/reports`) by servers of PHP.
 */
export class OtherNames {
  /** What the declared paths have at each place between their slashes. Mixed: a parameter and other text, as `{id}:cancel`. */
  readonly #places: { readonly literals: Set<string>; isMixed: boolean }[] = [];

  /** @param paths the declared paths, folded */
  constructor(paths: Iterable<string>) {
    for (const path of paths) {
      for (const [index, segment] of path.split('/').entries()) {
        this.#places[index] ??= { literals: new Set(), isMixed: false };
        const place = this.#places[index];
        if (!segment.includes('{')) place.literals.add(segment);
        else if (!/^\{[^{}]*\}$/.test(segment)) place.isMixed = true;
      }
    }
  }

  /**
   * The other paths: without a suffix that begins at the last dot of a segment, as in most routers, or at its first, as in Spring and,
   * for a media type and a language, Jersey; and without the name of a script. Some of them may be declared. A path with more
   * segments than any declared one has none, so their number is bounded.
   *
   * @param path folded
   * @param declared the declared path that this one matches, folded: a dot that it has itself begins no suffix
   */
  of(path: string, declared: string): readonly string[] {
    const names: string[] = [];
    let script: DottedSegment | undefined;
    // A script's name and a slash at the end come on top.
    for (const segment of dottedSegments(path, this.#places.length + 1)) {
      if (isDeclared(segment, declared)) continue;
      this.#addStems(names, path, segment);
      if (segment.text.endsWith('.php')) script ??= segment;
    }
    if (script !== undefined) names.push(path.slice(0, script.start - 1) + path.slice(script.end) || '/');
    return names;
  }

  /** Adds the path without the suffix of a segment, if it may be declared. */
  #addStems(names: string[], path: string, { text, index, start, end }: DottedSegment): void {
    const first = text.slice(0, text.indexOf('.'));
    const last = text.slice(0, text.lastIndexOf('.'));
    const isLast = end >= path.length - 1;
    if (this.#mayBeDeclared(first, index, isLast)) names.push(path.slice(0, start) + first + path.slice(end));
    if (last === first) return;
    if (this.#mayBeDeclared(last, index, isLast)) names.push(path.slice(0, start) + last + path.slice(end));
  }

  /** Any other stem is the value of a parameter, which has the same operation with its suffix. */
  #mayBeDeclared(stem: string, index: number, isLast: boolean): boolean {
    if (stem === '') return isLast;
    const place = this.#places[index];
    return place !== undefined && (place.isMixed || place.literals.has(stem));
  }
}

/** A segment of a path with a dot in it. */
interface DottedSegment {
  readonly text: string;
  /** 1 for the first segment. */
  readonly index: number;
  readonly start: number;
  readonly end: number;
}

/** The segments that have a dot; none if the path has more than `most` segments. */
function dottedSegments(path: string, most: number): readonly DottedSegment[] {
  const found: DottedSegment[] = [];
  let end = 0;
  for (let index = 1; end < path.length; index++) {
    if (index > most) return [];
    const start = end + 1;
    const slash = path.indexOf('/', start);
    end = slash === -1 ? path.length : slash;
    const text = path.slice(start, end);
    if (text.includes('.')) found.push({ text, index, start, end });
  }
  return found;
}

function isDeclared({ text, index }: DottedSegment, declared: string): boolean {
  return declared.includes(text) && declared.split('/')[index] === text;
}
