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

/**
 * A header field's name as CGI and WSGI servers compare it: in lower case, with `-` for every character that is not a letter or
 * digit. Most servers fold `_` only; lighttpd and old versions of Apache fold all.
 */
export function foldName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');
}
