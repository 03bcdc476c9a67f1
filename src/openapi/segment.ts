/** Characters that mean something in an expression. */
const SPECIAL = /[\\^$.*+?()[\]{}|]/g;

/** `report-{id}.{format}` in literals and parameters by turns: `['report-', '{id}', '.', '{format}', '']`. */
export function segmentParts(segment: string): readonly string[] {
  return segment.split(/(\{[^{}]*\})/);
}

/** Whether the part with this index is a parameter. */
export function isParameter(index: number): boolean {
  return index % 2 === 1;
}

export function escapeExpression(literal: string): string {
  return literal.replaceAll(SPECIAL, '\\$&');
}

/**
 * The expression, without a group around it, of a parameter that shares its segment with other text. A parameter ends where
 * the literal behind it first occurs: an expression that may also end later takes time that grows with a power of the
 * segment's length.
 *
 * @param behind the parts of the segment after the parameter
 */
export function parameterExpression(behind: readonly string[]): string {
  const [literal = ''] = behind;
  if (behind.length <= 1) return '[^/]+?';
  return literal === '' ? '[^/]' : `[^/](?:(?!${escapeExpression(literal)})[^/])*`;
}
