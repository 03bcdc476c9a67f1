import { Refusal } from './problems.ts';
import type { Target } from './types.ts';

/** Octets that RFC 3986 section 2.3 calls unreserved: their escapes mean the same as the bare character. */
const UNRESERVED_ESCAPE = /%(?:4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9AE]|3[0-9]|2[DE]|5F)/gi;

/** A path that needs no second look: plain segments, no escapes, no empty or dotted segment. */
const PLAIN_PATH = /^(?:\/[A-Za-z0-9_~!$&'()*+,=:@-][A-Za-z0-9._~!$&'()*+,=:@-]*)+$/;

/**
 * The canonical path and query of a request target in origin form (RFC 9112 section 3.2.1), used both to look up
 * the price and to forward. Escapes of unreserved characters are undone and the others written in capitals, so
 * that two spellings of one resource have one price. Whatever an upstream could read as another path is refused:
 * dot segments, empty segments, a trailing slash, backslashes, encoded slashes, `;` parameters, control octets.
 */
export function normalise(rawTarget: string): Target | Refusal {
  const queryAt = rawTarget.indexOf('?');
  const rawPath = queryAt === -1 ? rawTarget : rawTarget.slice(0, queryAt);
  const search = queryAt === -1 ? '' : rawTarget.slice(queryAt);
  if (search.includes('#')) return new Refusal('BadRequest', 'The request target must not have a fragment.');
  if (rawPath === '/' || PLAIN_PATH.test(rawPath)) return { path: rawPath, search };

  const path = rawPath
    .replace(UNRESERVED_ESCAPE, (octet) => decodeURIComponent(octet))
    .replace(/%[0-9a-f]{2}/gi, (octet) => octet.toUpperCase());
  const problem = problemOf(path);
  return problem === undefined ? { path, search } : new Refusal('BadRequest', problem);
}

/** Why this path could be read in two ways, as a sentence; undefined when it cannot. */
function problemOf(path: string): string | undefined {
  if (!path.startsWith('/')) return 'The request target must be a path.';
  if (/%(?![0-9A-F]{2})/.test(path)) return 'The path has a malformed percent escape.';
  if (/%(?:2F|5C|25)/.test(path)) return 'The path has an encoded slash, backslash or percent sign.';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control octets are what this line refuses.
  if (/[\u0000-\u0020\u007f-\uffff\\#;]|%[01][0-9A-F]|%7F/.test(path)) {
    return 'The path has a character that is not allowed there.';
  }
  const segments = path.split('/').slice(1);
  if (segments.some((segment) => segment === '.' || segment === '..')) return 'The path has a dot segment.';
  if (segments.some((segment) => segment === '')) return 'The path has an empty segment or a trailing slash.';
  return undefined;
}
