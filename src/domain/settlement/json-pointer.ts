/** The form of a JSON Pointer (RFC 6901) to a member. The whole document is not a member. */
export const POINTER_PATTERN = '^(/([^~/]|~[01])*)+$';

/** An index of an array (RFC 6901 section 4). A member of an object may have such a name too. */
const INDEX = /^(?:0|[1-9]\d*)$/;

/** Names that no program escapes. Only these can be searched for as they are. */
const PLAIN = /^[\w.-]+$/;

/** A pointer to a member, such as `/usage/total_tokens`. */
export class JsonPointer {
  readonly text: string;
  /** The names on the way to the member, outermost first. There is at least one. */
  readonly names: readonly string[];
  /** The names in UTF-8. */
  readonly keys: readonly Buffer[];
  /** The innermost name between quotation marks; undefined if a document may have it in another form. */
  readonly quoted: Buffer | undefined;
  /** Whether each name can be searched for as it is. */
  readonly isPlain: boolean;
  /** Whether one of the names may be an index. */
  readonly hasIndex: boolean;

  /** @param text matches `POINTER_PATTERN` */
  constructor(text: string) {
    this.text = text;
    const names = text.slice(1).split('/');
    this.names = names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
    this.keys = this.names.map((name) => Buffer.from(name));
    this.quoted = quotedIfPlain(this.names.at(-1));
    this.isPlain = this.names.every((name) => PLAIN.test(name));
    this.hasIndex = this.names.some((name) => INDEX.test(name));
  }

  /** The value in a parsed document; undefined if there is none. */
  valueIn(document: unknown): unknown {
    let value = document;
    for (const name of this.names) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
      if (Array.isArray(value) && !INDEX.test(name)) return undefined;
      value = (value as Readonly<Record<string, unknown>>)[name];
    }
    return value;
  }
}

function quotedIfPlain(name = ''): Buffer | undefined {
  return PLAIN.test(name) && !INDEX.test(name) ? Buffer.from(`"${name}"`) : undefined;
}
