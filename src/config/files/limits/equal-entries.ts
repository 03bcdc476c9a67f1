/**
 * Files with many overrides repeat themselves: of 100,000 Accounts with a plan, most have the same few words. A text is parsed without
 * the entries that repeat another one, which takes a twentieth of the time, and those get what was read of the other.
 */
import { isId } from '../../../domain/caller.ts';
import { OVERRIDE_SECTIONS, type OverrideSection } from '../../../domain/limits/scopes.ts';

/** For each id of a section, in the order of the text, an id that is left in it and has an equal entry. */
interface Shortened {
  /** The text without comments, and without the entries that repeat another one of their section. */
  readonly text: string;
  readonly sections: ReadonlyMap<OverrideSection, ReadonlyMap<string, string>>;
}

/** Characters of words and numbers that end with their line and have no other meaning in YAML. */
const WORD = '[A-Za-z0-9][\\w.:+-]*';
const QUOTED = '"[ !#-[\\]-~]*"';
const FLAT = `(?:[\\w ,:.+/-]|${QUOTED})`;
const FLOW = `[{[](?:${FLAT}|[{[]${FLAT}*[\\]}])*[\\]}]`;
const COMMENT = '#[ -~\\u00a0-\\ud7ff]*';

/** A key, and a value that ends on the same line. */
const LINE = new RegExp(
  `^( *)([A-Za-z][\\w.-]*|[0-9a-f]{8}-[\\w-]+):((?: +(?:${WORD}|${QUOTED}|${FLOW}))?)(?: +${COMMENT})? *$`,
);
const NOTHING = new RegExp(`^ *(?:${COMMENT})?$`);

/** Keys that YAML reads as something else than text. */
const NOT_TEXT = /^(?:null|true|false)$/i;

/**
 * Undefined for a text that has lines of any other form, an id twice, or nothing that repeats. Whether the entries are valid is left to
 * the parser: it finds in an entry that is left what is wrong with those that are equal.
 */
export function withoutRepeats(text: string): Shortened | undefined {
  const shortener = new Shortener();
  for (const line of text.split('\n')) {
    if (NOTHING.test(line)) continue;
    const match = LINE.exec(line);
    if (match === null || !shortener.take(line, match)) return undefined;
  }
  return shortener.end();
}

interface WrittenEntry {
  readonly id: string;
  readonly line: string;
  /** Everything but its id. */
  body: string;
  /** The lines below the first. */
  rest: string;
}

class Shortener {
  readonly #kept: string[] = [];
  readonly #sections = new Map<OverrideSection, Map<string, string>>();
  readonly #idOf = new Map<string, string>();
  #ids: Map<string, string> | undefined;
  #indent = 0;
  #entry: WrittenEntry | undefined;
  #hasRepeats = false;

  /** Returns false if the text cannot be shortened. */
  take(line: string, [, indent = '', key = '', value = '']: RegExpExecArray): boolean {
    if (indent === '') return this.#startSection(line, key, value);
    if (this.#ids === undefined) this.#kept.push(line);
    else if (this.#entry !== undefined && indent.length > this.#indent) {
      this.#entry.body += `\n${line}`;
      this.#entry.rest += `\n${line}`;
    } else {
      if (this.#entry !== undefined && indent.length < this.#indent) return false;
      if (NOT_TEXT.test(key) || !isId(key) || !this.#endEntry()) return false;
      this.#indent = indent.length;
      this.#entry = { id: key, line, body: value, rest: '' };
    }
    return true;
  }

  end(): Shortened | undefined {
    if (!this.#endEntry() || !this.#hasRepeats) return undefined;
    return { text: this.#kept.join('\n'), sections: this.#sections };
  }

  #startSection(line: string, key: string, value: string): boolean {
    if (!this.#endEntry()) return false;
    this.#kept.push(line);
    const section = value === '' ? OVERRIDE_SECTIONS.find((name) => name === key) : undefined;
    // An id of an address has forms that are compared with it.
    this.#ids = section === undefined || section === 'addresses' ? undefined : new Map();
    if (section === undefined || this.#ids === undefined) return true;
    if (this.#sections.has(section)) return false;
    this.#sections.set(section, this.#ids);
    this.#idOf.clear();
    return true;
  }

  #endEntry(): boolean {
    if (this.#entry === undefined) return true;
    const { id, line, body, rest } = this.#entry;
    this.#entry = undefined;
    if (this.#ids === undefined || this.#ids.has(id)) return false;
    const same = this.#idOf.get(body);
    this.#ids.set(id, same ?? id);
    if (same !== undefined) this.#hasRepeats = true;
    else {
      this.#idOf.set(body, id);
      this.#kept.push(line + rest);
    }
    return true;
  }
}
