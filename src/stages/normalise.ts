import { Refusal } from '../domain/problems.ts';
import type { PathProfile } from './path/folded-path.ts';
import { asciiOf, foldedPath, hasAsciiForm } from './path/folded-path.ts';
import type { Target } from './request-context.ts';

/**
 * The longest path, in characters as it is sent. Servers commonly accept 4 to 8 KiB (nginx 8,192, Apache 8,190, Tomcat 8,192, gunicorn
 * 4,094), and RFC 9112 section 3 asks for a request line of 8,000.
 */
export const MAX_PATH_LENGTH = 8_192;

/** As in the Stream-Safe Text Format (UAX #15 section 13). Words of living languages have at most a handful. */
export const MAX_MARKS = 30;

/**
 * What normalisation puts in order within a run: marks, and the two letters that NFKC turns into marks. What is ignorable may be removed
 * first, so it does not end a run.
 */
const MARKS = /[\p{M}\p{Default_Ignorable_Code_Point}\uff9e\uff9f]+/gu;

/** A path that is canonical already: plain segments, no escapes, no empty or dotted segment. */
const PLAIN_PATH = /^(?:\/[A-Za-z0-9_~!$&'()*+,=:@-][A-Za-z0-9._~!$&'()*+,=:@-]*)+$/;

/** Octets that RFC 3986 section 2.3 calls unreserved: their escapes mean the same as the bare character. */
const UNRESERVED_ESCAPE = /%(?:4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9AE]|3[0-9]|2[DE]|5F)/gi;

/** An escape that is not in its canonical form. */
const LOWER_CASE_ESCAPE = /%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])/g;

/** Escapes that some routers or proxies decode and then read as syntax: `/ \ % ? # ;` and control characters. */
const TREACHEROUS_ESCAPE = /%(?:2F|5C|25|3F|23|3B|[01][0-9A-F]|7F)/;

/** Characters that RFC 3986 section 3.3 does not allow in a path; routers differ on their meaning. */
const FOREIGN_CHARACTER = /[^A-Za-z0-9._~!$&'()*+,=:@%;/-]/;

/**
 * The canonical path and query of a request target in origin form (RFC 9112 section 3.2.1), used both to look up
 * the cost and to forward. Escapes of unreserved characters are decoded and the others written in capitals, so
 * that all spellings of one resource have the same cost. Anything that an upstream could read as another path is refused:
 * dot segments, backslashes, encoded slashes, double encoding, fragments, targets in absolute form, `*`. Duplicate
 * slashes, `;` parameters and characters with an ASCII form follow the profile, as does a trailing slash that could be read in two ways.
 * The query is forwarded unchanged; it does not affect the cost. Length and combining marks are bounded before anything decodes or
 * compares the path, because normalising a long run of marks takes more than linear time.
 *
 * @param servesSlash whether this folded path, which ends with a slash, means one thing only. Asked where the profile refuses or
 *   removes a slash
 */
export function normalise(
  rawTarget: string,
  profile: PathProfile,
  servesSlash: (folded: string) => boolean = () => false,
): Target | Refusal {
  const queryAt = rawTarget.indexOf('?');
  const rawPath = queryAt === -1 ? rawTarget : rawTarget.slice(0, queryAt);
  const search = queryAt === -1 ? '' : rawTarget.slice(queryAt);
  if (search.includes('#')) return new Refusal('BadRequest', FRAGMENT);
  if (rawPath.length > MAX_PATH_LENGTH) return new Refusal('BadRequest', TOO_LONG);
  if (rawPath === '/' || PLAIN_PATH.test(rawPath)) return { path: rawPath, search };

  const problem = characterProblem(rawPath, profile);
  if (problem !== undefined) return new Refusal('BadRequest', problem);
  const path = rawPath.replace(UNRESERVED_ESCAPE, asciiOf).replace(LOWER_CASE_ESCAPE, inUpperCase);
  const shaped = shape(path, profile, servesSlash);
  if ('problem' in shaped) return new Refusal('BadRequest', shaped.problem);
  return { path: shaped.path, search, folded: shaped.folded };
}

const TOO_LONG = `The path has more than ${MAX_PATH_LENGTH} characters.`;

const FRAGMENT = 'The request target must not have a fragment.';

const inUpperCase = (octet: string) => octet.toUpperCase();

/** A sentence that says why these characters are ambiguous; undefined if they are not. */
function characterProblem(rawPath: string, { asciiForms }: PathProfile): string | undefined {
  if (!rawPath.startsWith('/')) return 'The request target must be a path that begins with a slash.';
  if (rawPath.includes('#')) return FRAGMENT;
  if (FOREIGN_CHARACTER.test(rawPath))
    return 'The path has a character that is not allowed in a URL, such as a space or a bracket.';
  if (TREACHEROUS_ESCAPE.test(rawPath.toUpperCase())) {
    return 'The path has an encoded slash, backslash, percent sign, question mark, hash, semicolon or control octet.';
  }
  let decoded: string;
  try {
    // Overlong and broken UTF-8 hides a dot or a slash from a strict reader and shows it to a lax one.
    decoded = decodeURIComponent(rawPath);
  } catch {
    return 'The path has a malformed percent escape.';
  }
  if (hasTooManyMarks(decoded)) return TOO_MANY_MARKS;
  if (asciiForms !== 'distinct' && hasAsciiForm(decoded)) {
    return 'The path has a Unicode character that some servers read as an ASCII letter, digit or slash.';
  }
  return undefined;
}

const TOO_MANY_MARKS = `The path has more than ${MAX_MARKS} combining marks or invisible characters in a row.`;

const TRAILING_SLASH =
  'The path ends with a slash, and the API is described without it. Leave the slash out.';

/** Applies the profile to a path whose characters are valid. */
function shape(
  path: string,
  profile: PathProfile,
  servesSlash: (folded: string) => boolean,
): { readonly path: string; readonly folded: string } | { readonly problem: string } {
  const problem = shapeProblem(path, profile);
  if (problem !== undefined) return { problem };
  let shaped = path;
  if (profile.matrixParameters === 'remove') shaped = shaped.replace(/;[^/]*/g, '');
  if (profile.duplicateSlashes === 'merge') shaped = shaped.replace(/\/{2,}/g, '/');
  let folded = foldedPath(shaped, profile.case);
  const { trailingSlash } = profile;
  if (
    (trailingSlash === 'refuse' || trailingSlash === 'remove') &&
    shaped.endsWith('/') &&
    !servesSlash(folded)
  ) {
    if (trailingSlash === 'refuse') return { problem: TRAILING_SLASH };
    shaped = withoutSlash(shaped);
    folded = withoutSlash(folded);
  }
  // Last, because removing parameters can create one: `/.;x/`.
  if (/\/\.\.?(?:[;/]|$)/.test(shaped))
    return { problem: 'The path has a segment "." or "..". Send the path without it.' };
  return { path: shaped, folded };
}

function withoutSlash(path: string): string {
  return path.replace(/(?<!\/)\/+$/, '') || '/';
}

function shapeProblem(path: string, profile: PathProfile): string | undefined {
  if (profile.matrixParameters === 'refuse' && path.includes(';'))
    return 'The path has a semicolon, which servers read in different ways. Leave it out.';
  if (profile.duplicateSlashes === 'refuse' && path.includes('//'))
    return 'The path has two slashes in a row. Use one.';
  return undefined;
}

/** Whether a run of marks in a decoded path is longer than can be put in order in linear time. */
function hasTooManyMarks(decodedPath: string): boolean {
  for (const [run] of decodedPath.matchAll(MARKS)) {
    // A mark outside the basic plane has two units.
    if (run.length > MAX_MARKS && [...run].length > MAX_MARKS) return true;
  }
  return false;
}
