/** Characters with a special meaning in a regular expression. */
const SPECIAL = /[\\^$.*+?()[\]{}|]/g;

/** Splits `report-{id}.{format}` into alternating literals and parameters: `['report-', '{id}', '.', '{format}', '']`. */
export function segmentParts(segment: string): readonly string[] {
  return segment.split(/(\{[^{}]*\})/);
}

/** Whether the part with this index is a parameter. */
export function isParameter(index: number): boolean {
  return index % 2 === 1;
}

/** A literal as routers compare it: with decoded characters. */
export function decodedLiteral(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function escapeExpression(literal: string): string {
  return literal.replaceAll(SPECIAL, '\\$&');
}

/**
 * The regular expression, without a group, for a parameter that shares its segment with other text. The parameter ends at the
 * first occurrence of the literal after it. If it could also end later, matching would take polynomial time.
 *
 * @param behind the parts of the segment that follow the parameter
 */
export function parameterExpression(behind: readonly string[]): string {
  const [literal = ''] = behind;
  if (behind.length <= 1) return '[^/]+?';
  return literal === '' ? '[^/]' : `[^/](?:(?!${escapeExpression(literal)})[^/])*`;
}
