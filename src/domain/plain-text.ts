/**
 * Text for people that stays on its line and reads in its own order: no control characters, line separators, halves of surrogate
 * pairs or characters that change the direction. A regular expression with the flag `u`.
 */
export const PLAIN_TEXT =
  '^[^\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]*$';
