/** One `name=value` of a query, decoded. */
export interface QueryPair {
  readonly name: string;
  readonly value: string;
  /** Why parsers could interpret this pair differently. */
  readonly problem?: string;
}

/** Characters allowed unencoded in a query (RFC 3986 section 3.4), and others that clients commonly send. */
const VISIBLE_ASCII = /^[\x21-\x7e]*$/;

/**
 * The pairs of a query in order, parsed as `application/x-www-form-urlencoded`. A plus sign is a space, brackets may be
 * percent-encoded, a name without `=` has an empty value, and empty pairs are skipped.
 *
 * @param search with its leading `?`
 */
export function readQuery(search: string): readonly QueryPair[] {
  const pairs: QueryPair[] = [];
  for (const text of search.slice(1).split('&')) {
    if (text !== '') pairs.push(readPair(text));
  }
  return pairs;
}

function readPair(text: string): QueryPair {
  const equalsAt = text.indexOf('=');
  const rawName = equalsAt === -1 ? text : text.slice(0, equalsAt);
  const name = decoded(rawName);
  const value = equalsAt === -1 ? '' : decoded(text.slice(equalsAt + 1));
  if (name === undefined || value === undefined) {
    return { name: name ?? rawName, value: '', problem: 'has an escape that is not valid UTF-8' };
  }
  if (!VISIBLE_ASCII.test(text)) return { name, value, problem: 'has characters that need percent-encoding' };
  return { name, value };
}

function decoded(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
