/**
 * What a terminal would obey or hide: control characters (C0, C1, DEL), format characters such as the marks of bidirectional text,
 * line separators, characters without a width, and halves of surrogate pairs.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/** A text as one line that is safe on a terminal: what a terminal would obey or hide becomes `\u001b`, as in JSON. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** JSON text with the same value, and as safe on a terminal. Only line breaks, which are between its values, remain. */
export function printableJson(json: string): string {
  return json.replace(UNPRINTABLE, (character) => (character === '\n' ? character : escaped(character)));
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** What plain text does not have, as a class of characters. */
const FORBIDDEN = '\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';

/**
 * Text for people that stays on its line and reads in its own order: no control characters, line separators, halves of surrogate
 * pairs or characters that change the direction. A regular expression with the flag `u`.
 */
export const PLAIN_TEXT = `^[^${FORBIDDEN}]*$`;

const NOT_PLAIN = new RegExp(`[${FORBIDDEN}]`, 'gu');

/** A text as `PLAIN_TEXT` allows it, of `most` characters at most. */
export function plainLine(text: string, most: number): string {
  const plain = text.replace(NOT_PLAIN, escaped);
  if (plain.length <= most) return plain;
  // The cut may leave half of a surrogate pair.
  return `${plain.slice(0, most - 1).replace(/\p{Cs}$/u, '')}…`;
}
