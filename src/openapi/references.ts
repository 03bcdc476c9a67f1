import { fileURLToPath, pathToFileURL } from 'node:url';

/** What a `$ref` names. */
interface Target {
  /** The path of a local file, or the address of one that is not on this machine. */
  readonly file: string;
  readonly fragment: string;
  /** The words of a JSON Pointer in the fragment; undefined for an anchor. */
  readonly words: readonly string[] | undefined;
}

/** The target of a reference that stands in a file; undefined for a text that is no reference. */
export function resolveReference(reference: string, file: string): Target | undefined {
  const base = pathToFileURL(file).href;
  if (!URL.canParse(reference, base)) return undefined;
  const url = new URL(reference, base);
  const fragment = url.hash.slice(1);
  url.hash = '';
  return {
    file: url.protocol === 'file:' ? fileURLToPath(url) : url.href,
    fragment,
    words: pointerWords(fragment),
  };
}

/** RFC 6901 section 6: a JSON Pointer as a fragment. */
function pointerWords(fragment: string): readonly string[] | undefined {
  if (fragment === '') return [];
  if (!fragment.startsWith('/')) return undefined;
  const words = fragment.slice(1).split('/');
  return words.map((word) => decoded(word).replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Undoes percent escapes; a text with malformed ones stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
