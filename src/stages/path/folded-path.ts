/** Escapes of characters that need no escape in a path segment (RFC 3986 section 3.3). */
const PCHAR_ESCAPE = /%(?:21|24|26|27|28|29|2A|2B|2C|3A|3B|3D|40)/g;

/**
 * A canonical path as it is compared with the declared ones: without needless escapes, and in one letter case if the router ignores
 * letter case. The work grows with the path, so a request's path is folded once.
 */
export function foldedPath(path: string, letterCase: PathProfile['case']): string {
  return inCase(path.includes('%') ? servedPath(path) : path, letterCase);
}

/** Upstreams decode a segment before they route: `/things/1%3Acancel` may be served as `/things/1:cancel`. */
function servedPath(path: string): string {
  return path.replaceAll(PCHAR_ESCAPE, asciiOf);
}

/** The ASCII character that is escaped. */
export function asciiOf(octet: string): string {
  return String.fromCharCode(Number.parseInt(octet.slice(1), 16));
}

/** Folds letter case, also in literals within a parameter's segment. */
export function inCase(path: string, letterCase: PathProfile['case']): string {
  if (letterCase === 'sensitive') return path;
  return path.includes('%') ? foldCase(decodedText(path)) : foldCase(path);
}

/** Undoes the escapes of characters that are not ASCII; those that are not UTF-8 stay. */
function decodedText(path: string): string {
  return path.replaceAll(/(?:%[89A-F][0-9A-F])+/gi, (octets) => {
    try {
      return decodeURIComponent(octets);
    } catch {
      return octets;
    }
  });
}

/**
 * Non-ASCII characters that become ASCII in a router that folds case or normalises paths. The Kelvin sign becomes `k`, so
 * `bul\u212a` would run the operation `bulk`. Computed from the Unicode data of the running Node.
 */

/**
 * Every character that one of the mappings below changes, and every unassigned one: the upstream may have a later version of
 * Unicode that maps it.
 */
const SUSPECTS =
  /(?![\0-\x7f])[\p{Changes_When_NFKC_Casefolded}\p{Changes_When_Uppercased}\p{Changes_When_Lowercased}\p{Unassigned}]/gu;

/**
 * What some mapping removes: NFKC_Casefold the default ignorable characters (soft hyphen, joiners, variation selectors),
 * Turkish and Lithuanian case mapping the dot above (U+0307).
 */
const REMOVABLE = /\p{Default_Ignorable_Code_Point}|\u0307/gu;

const NOT_ASCII = /[^\0-\x7f]/;
const ASCII = /[\0-\x7f]/;
const UNASSIGNED = /\p{Unassigned}/u;

/** Full case mapping, in general and for Turkish, and compatibility normalisation. Case folding is made of them. */
const MAPPINGS: readonly ((text: string) => string)[] = [
  (text) => text.toLowerCase(),
  (text) => text.toUpperCase(),
  (text) => text.toLocaleLowerCase('tr'),
  (text) => text.toLocaleUpperCase('tr'),
  (text) => text.normalize('NFKC'),
];

/** Results by character. It holds suspect characters only, some 12,000 of the assigned ones. */
const answers = new Map<string, boolean>();

/**
 * Whether a router could read ASCII where a decoded path has other characters: because case folding (simple, full or
 * Turkish) or NFKC turns one of them into ASCII or into a sequence with ASCII in it, or because all that is not ASCII in
 * one of its segments may be removed. An accented letter has no ASCII form: normalised, it remains one.
 */
export function hasAsciiForm(decodedPath: string): boolean {
  for (const [character] of decodedPath.matchAll(SUSPECTS)) {
    if (UNASSIGNED.test(character) || becomesAscii(character)) return true;
  }
  return decodedPath
    .split('/')
    .some((segment) => NOT_ASCII.test(segment) && !NOT_ASCII.test(segment.replace(REMOVABLE, '')));
}

function becomesAscii(character: string): boolean {
  let answer = answers.get(character);
  if (answer === undefined) {
    answer = reachesAscii(character, MOST_MAPPINGS);
    answers.set(character, answer);
  }
  return answer;
}

/** Folding U+1E9E to `ss` takes two mappings in a row; no character takes more. */
const MOST_MAPPINGS = 3;

function reachesAscii(text: string, mappings: number): boolean {
  if (ASCII.test(text)) return true;
  if (mappings === 0) return false;
  return MAPPINGS.some((map) => {
    const mapped = map(text);
    return mapped !== text && reachesAscii(mapped, mappings - 1);
  });
}

/**
 * A decoded path as routers that ignore letter case compare it: case folded, NFKC, without ignorable characters. ASCII
 * other than letters is left as it is, and so is what would become ASCII: it may not turn into syntax.
 */
function foldCase(decodedPath: string): string {
  if (!NOT_ASCII.test(decodedPath)) return decodedPath.toLowerCase();
  return decodedPath
    .replace(/[A-Za-z]?[^\0-\x7f]+/gu, (run) => {
      const folded = run
        .replace(REMOVABLE, '')
        .normalize('NFKC')
        .toUpperCase()
        .toLowerCase()
        .normalize('NFKC');
      return asciiIn(folded) > asciiIn(run) ? run : folded;
    })
    .toLowerCase();
}

function asciiIn(text: string): number {
  return text.length - text.replace(/[\0-\x7f]/g, '').length;
}

/** How the upstream's router reads ambiguous paths. */
export interface PathProfile {
  /** Whether it treats `/Things` and `/things` as the same path. */
  readonly case: 'insensitive' | 'sensitive';
  /** What a request for `/things/` is, where only `/things` is declared. */
  readonly trailingSlash: 'same' | 'refuse' | 'remove' | 'distinct';
  readonly duplicateSlashes: 'refuse' | 'merge' | 'distinct';
  readonly matrixParameters: 'refuse' | 'remove' | 'literal';
  /** Characters that case folding or NFKC turns into ASCII, such as the Kelvin sign. */
  readonly asciiForms: 'refuse' | 'distinct';
}
