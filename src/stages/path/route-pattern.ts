import { isParameter, parameterExpression, segmentParts } from '../../operations/documents/segment.ts';

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
