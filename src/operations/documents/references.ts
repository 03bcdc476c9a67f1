import { fileURLToPath, pathToFileURL } from 'node:url';

/** The target of a `$ref`. */
interface ReferenceTarget {
  /** The path of a local file, or the URL of another resource. */
  readonly file: string;
  readonly fragment: string;
  /** The tokens of a JSON Pointer in the fragment; undefined for an anchor. */
  readonly words: readonly string[] | undefined;
}

/** The target of a reference in the given file; undefined if it is not a valid reference. */
export function resolveReference(reference: string, file: string): ReferenceTarget | undefined {
  const base = pathToFileURL(file).href;
  if (!URL.canParse(reference, base)) return undefined;
  const url = new URL(reference, base);
  const fragment = url.hash.slice(1);
  url.hash = '';
  const target = url.protocol === 'file:' ? localFile(url) : url.href;
  return target === undefined ? undefined : { file: target, fragment, words: pointerWords(fragment) };
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
