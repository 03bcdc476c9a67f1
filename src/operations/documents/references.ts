import { fileURLToPath, pathToFileURL } from 'node:url';

/** The target of a `$ref`. */
export interface ReferenceTarget {
  /** The path of a local file, or the URL of another resource. */
  readonly file: string;
  readonly fragment: string;
  /** The tokens of a JSON Pointer in the fragment; undefined for an anchor. */
  readonly words: readonly string[] | undefined;
}

/**
 * The target of a reference in the given file; undefined if it is not a valid reference.
 *
 * @param self the `$self` of the file, which is the base of its references (OpenAPI 3.2 section 4.1.2.1). Documents on its host are looked for
 *   at the same relative place beside the file, because nothing is read from the network.
 */
export function resolveReference(
  reference: string,
  file: string,
  self?: unknown,
): ReferenceTarget | undefined {
  const location = pathToFileURL(file);
  const base = baseOf(self, location);
  if (!URL.canParse(reference, base.href)) return undefined;
  const url = besideFile(new URL(reference, base), base, location);
  const fragment = url.hash.slice(1);
  url.hash = '';
  const target = url.protocol === 'file:' ? localFile(url) : url.href;
  return target === undefined ? undefined : { file: target, fragment, words: pointerWords(fragment) };
}

/** An invalid `$self` counts as none. */
function baseOf(self: unknown, location: URL): URL {
  return typeof self === 'string' && URL.canParse(self, location.href) ? new URL(self, location) : location;
}

/** The URL of the file that has the place of this resource relative to the base. */
function besideFile(url: URL, base: URL, location: URL): URL {
  if (base === location || url.protocol !== base.protocol || url.host !== base.host) return url;
  const from = base.pathname.split('/');
  const to = url.pathname.split('/');
  let common = 0;
  while (common < from.length - 1 && from[common] === to[common]) common++;
  const isItself = url.pathname === base.pathname;
  const relative = [...from.slice(common + 1).map(() => '..'), ...to.slice(common)].join('/');
  return new URL(`${isItself ? '' : `./${relative}`}${url.hash}`, location);
}

/** Whether the `file` of a target is the URL of another resource, in any scheme. */
export function isRemote(file: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(file);
}

/** The path of a file URL. Undefined if it names another host, or if its path has malformed escapes, an escaped slash or a NUL. */
function localFile(url: URL): string | undefined {
  try {
    const path = fileURLToPath(url);
    return path.includes('\0') ? undefined : path;
  } catch {
    return undefined;
  }
}

/** Parses a JSON Pointer in a URI fragment (RFC 6901 section 6). */
function pointerWords(fragment: string): readonly string[] | undefined {
  if (fragment === '') return [];
  if (!fragment.startsWith('/')) return undefined;
  const words = fragment.slice(1).split('/');
  return words.map((word) => decoded(word).replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Decodes percent escapes. A text with malformed escapes is returned unchanged. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
