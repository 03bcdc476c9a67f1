import { maskUrl } from './mask.ts';
import { isMapping, kindOf, type SchemaNode } from './schema-node.ts';

/** Describes the values that a setting accepts: `a whole number from 0 to 65535`. */
export function expected(schema: SchemaNode): string {
  if (schema.expects !== undefined) return schema.expects;
  if (schema.const !== undefined) return String(schema.const);
  if (schema.anyOf !== undefined) return listed(schema.anyOf.map((one) => kindOf(one) ?? expected(one)));
  switch (schema.type) {
    case 'integer':
      return `a whole number${range(schema)}`;
    case 'number':
      return `a number${range(schema)}`;
    case 'boolean':
      return 'true or false';
    case 'string':
      return schema.minLength === undefined ? 'text' : 'text that is not empty';
    case 'array':
      return schema.items === undefined ? 'a list' : `a list of: ${expected(schema.items)}`;
    default:
      return 'a mapping';
  }
}

function range({ minimum, maximum }: SchemaNode): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` of at least ${minimum}`;
  return maximum === undefined ? '' : ` of at most ${maximum}`;
}

/** `a, b or c` */
export function listed(words: readonly string[]): string {
  const unique = [...new Set(words)];
  const last = unique.pop() ?? '';
  return unique.length === 0 ? last : `${unique.join(', ')} or ${last}`;
}

/** A value for use in a message: truncated, with URL credentials masked. Secrets are not shown. */
export function described(value: unknown, schema: SchemaNode): string {
  if (value === null || value === undefined) return 'nothing';
  if (value === '') return 'empty';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (isMapping(value)) return 'a mapping';
  if (schema.secret)
    return typeof value === 'string'
      ? 'something else, which is not shown because it is a secret'
      : `a ${typeof value}`;
  const text = typeof value === 'string' ? JSON.stringify(maskUrl(value)) : String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** The entry of `known` that `word` is most likely a misspelling of; undefined if none is similar. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  return nearestOf(word, known, 1)[0];
}

/** The entries of `known` that are similar to `word`, the most similar first. */
export function nearestOf(word: string, known: Iterable<string>, most: number): readonly string[] {
  const maxDistance = word.length < 3 ? 1 : Math.max(2, Math.floor(word.length / 3));
  const similar: { readonly candidate: string; readonly distance: number }[] = [];
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) > maxDistance) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance <= maxDistance) similar.push({ candidate, distance });
  }
  return similar
    .sort((a, b) => a.distance - b.distance)
    .slice(0, most)
    .map(({ candidate }) => candidate);
}

/** `did you mean "port"?`, with the entry of `known` that is most similar; undefined if none is. */
export function didYouMean(word: string, known: readonly string[]): string | undefined {
  const similar = nearest(word, known);
  return similar === undefined ? undefined : `did you mean "${similar}"?`;
}

/** ` Did you mean acct_1?`, as the next sentence of a message, with the most similar id; empty if none is. */
export function suggestionOf(id: string, known: Iterable<string>): string {
  const similar = nearest(id, [...known]);
  return similar === undefined ? '' : ` Did you mean ${similar}?`;
}

/** Levenshtein distance, computed one row at a time. */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const letter of a) {
    const row = [(above[0] ?? 0) + 1];
    for (let column = 1; column < above.length; column++) {
      const substituted = cell(above, column - 1) + (b[column - 1] === letter ? 0 : 1);
      row.push(Math.min(cell(above, column) + 1, cell(row, column - 1) + 1, substituted));
    }
    above = row;
  }
  return cell(above, b.length);
}

function cell(row: readonly number[], column: number): number {
  return row[column] ?? 0;
}
