/** The values of a message's header fields by lower-case name. Several values of one name are joined by commas. */
export type FieldValues = Readonly<Record<string, string | undefined>>;

/** The header fields of a message, as far as their values are concerned. */
export interface Fields {
  /** The value of a field, whose name is in lower case. */
  field(name: string): string | undefined;
}

/** The header fields of a message with their names, as sent and folded. */
export interface NamedFields extends Fields {
  readonly fields: {
    readonly names: readonly { readonly lower: string; readonly folded: string }[];
  };
}

/** V8 copies shorter texts, and only refers to the text that longer ones are cut from. */
const SHORTEST_CUT = 13;

/**
 * A text that was cut from a longer one, in memory of its own. Kept without it, a text keeps the whole longer one, and a head has a token.
 * Not for texts beyond Latin-1, which no head has: they are returned as they are.
 */
export function ownCopy(text: string): string {
  if (text.length < SHORTEST_CUT) return text;
  const copy = Buffer.from(text, 'latin1').toString('latin1');
  return copy === text ? copy : text;
}

/**
 * A header field's name as CGI and WSGI servers compare it: in lower case, with `-` for every character that is not a letter or
 * digit. Most servers fold `_` only; lighttpd and old versions of Apache fold all.
 */
export function foldName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');
}
