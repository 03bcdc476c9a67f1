import { foldCase } from './ascii-forms.ts';
import type { LetterCase } from './profile.ts';

/** Escapes of characters that need no escape in a path segment (RFC 3986 section 3.3). */
const PCHAR_ESCAPE = /%(?:21|24|26|27|28|29|2A|2B|2C|3A|3B|3D|40)/g;

/**
 * A canonical path as it is compared with the declared ones: without needless escapes, and in one letter case if the router ignores
 * letter case. The work grows with the path, so a request's path is folded once.
 */
export function foldedPath(path: string, letterCase: LetterCase): string {
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
export function inCase(path: string, letterCase: LetterCase): string {
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
