import { isParameter, parameterExpression, segmentParts } from '../../openapi/segment.ts';

/**
 * `/v3/files/{name}.{format}` in the syntax of find-my-way; undefined for a path that no request target can have. Its syntax is
 * escaped in literals, such as the colon in `/things/{id}:cancel`.
 */
export function routePattern(path: string): string | undefined {
  const literals = path.replaceAll(/\{[^{}]*\}/g, '');
  if (/[?#*{}]/.test(literals)) return undefined;
  let count = 0;
  const segments = path.split('/').map((segment) => {
    const isWhole = /^\{[^{}]*\}$/.test(segment);
    const parts = segmentParts(segment).map((part, index) =>
      isParameter(index) ? part : decodedLiteral(part),
    );
    const patterns = parts.map((part, index) => {
      if (!isParameter(index)) return part.replaceAll(':', '::');
      return isWhole ? `:p${count++}` : `:p${count++}(${parameterExpression(parts.slice(index + 1))})`;
    });
    return patterns.join('');
  });
  return segments.join('/');
}

/** The router compares decoded characters. */
function decodedLiteral(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Escapes of characters that need no escape in a path segment (RFC 3986 section 3.3). */
const PCHAR_ESCAPE = /%(?:21|24|26|27|28|29|2A|2B|2C|3A|3B|3D|40)/g;

/** Upstreams decode a segment before they route: `/things/1%3Acancel` may be served as `/things/1:cancel`. */
export function servedPath(path: string): string {
  return path.replaceAll(PCHAR_ESCAPE, (octet) => decodeURIComponent(octet));
}
