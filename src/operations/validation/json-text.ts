import { countNames, countProperties } from '../../domain/json-names.ts';

/**
 * Arrays and objects within each other. Jackson, Java's most common parser, has the same limit. Ajv calls itself at each level, and a
 * stack that overflows takes hundreds of times as long as a request.
 */
const MAX_DEPTH = 1_000;

/**
 * Parses a JSON text in UTF-8 (RFC 8259). An object with duplicate names is a problem, because parsers differ in which
 * value they use (section 4), so the upstream could use one that was not validated.
 */
export function readJson(bytes: Buffer): { readonly value: unknown } | { readonly problem: string } {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    return { problem: 'is not valid JSON' };
  }
  const properties = countProperties(value, MAX_DEPTH);
  if (properties === undefined) return { problem: 'is too deeply nested or too complex to be validated' };
  return countNames(text) === properties ? { value } : { problem: 'has an object with the same name twice' };
}
