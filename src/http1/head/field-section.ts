import { isFieldValue, isToken } from '../grammar.ts';
import { type FieldName, fieldName } from './field-names.ts';

const SPACE = 0x20;

/** Numbers that are kept for each field: where its line begins, and its value begins and ends. */
const MARKS = 3;

/** A field line with its CRLF. @throws TypeError if the field could break its line */
export function fieldLine(name = '', value = ''): string {
  if (!isToken(name) || !isFieldValue(value)) throw new TypeError('a field has an octet that is not allowed');
  return `${name}: ${value}\r\n`;
}

/**
 * The field lines of a message, which were checked, and what they say about its framing. They stay text: values, and the lines to
 * forward, are cut from it when they are needed, and are not checked again.
 */
export class FieldSection {
  readonly names: FieldName[] = [];
  /** Undefined where there is no Content-Length. */
  contentLength: number | undefined = undefined;
  isChunked = false;
  /** Value of Connection; several are joined by commas. */
  connection: string | undefined = undefined;
  readonly #text: string;
  readonly #end: number;
  readonly #marks: number[] = [];
  /** A bit for each length of a name, modulo 32. */
  #lengths = 0;

  /**
   * @param text latin1: one character is one octet
   * @param end where the field lines end in it
   */
  constructor(text: string, end: number) {
    this.#text = text;
    this.#end = end;
  }

  /**
   * The section of fields that another parser has read: name, value, name, value. Their framing is that parser's affair.
   *
   * @throws TypeError if a field could break its line
   */
  static of(fields: readonly string[]): FieldSection {
    let text = '';
    for (let index = 0; index < fields.length; index += 2)
      text += fieldLine(fields[index], fields[index + 1]);
    const section = new FieldSection(text, text.length);
    let at = 0;
    for (let index = 0; index < fields.length; index += 2) {
      const name = fieldName(fields[index] ?? '');
      const valueAt = at + name.text.length + 2;
      const end = valueAt + (fields[index + 1] ?? '').length;
      section.add(name, at, valueAt, end);
      at = end + 2;
    }
    return section;
  }

  /** Adds a field. The marks are places in the text. */
  add(name: FieldName, lineAt: number, valueAt: number, valueEnd: number): void {
    this.names.push(name);
    this.#lengths |= 1 << name.lower.length;
    this.#marks.push(lineAt, valueAt, valueEnd);
  }

  get size(): number {
    return this.names.length;
  }

  valueAt(index: number): string {
    return this.#text.slice(this.#marks[index * MARKS + 1], this.#marks[index * MARKS + 2]);
  }

  /** The value of the first field of this name, which is in lower case. */
  get(lower: string): string | undefined {
    const index = this.indexOf(lower);
    return index === -1 ? undefined : this.valueAt(index);
  }

  has(lower: string): boolean {
    return this.indexOf(lower) !== -1;
  }

  /** The place of the first field of this name, which is in lower case; -1 if there is none. */
  indexOf(lower: string): number {
    const { length } = lower;
    // A request is asked for twenty names, most of which it does not have.
    if ((this.#lengths & (1 << length)) === 0) return -1;
    const { names } = this;
    for (let index = 0; index < names.length; index++) {
      const name = names[index];
      if (name?.lower.length === length && name.lower === lower) return index;
    }
    return -1;
  }

  /** Calls `visit` with each field, in order. */
  forEach(visit: (name: FieldName, value: string) => void): void {
    for (const [index, name] of this.names.entries()) visit(name, this.valueAt(index));
  }

  /** As sent: name, value, name, value. */
  get list(): string[] {
    return this.names.flatMap((name, index) => [name.text, this.valueAt(index)]);
  }

  /** The lines of the fields that are kept, in order, each with its CRLF. One space precedes each value. */
  linesOf(isKept: (name: FieldName) => boolean): string {
    const { names } = this;
    let lines = '';
    for (let index = 0; index < names.length; index++) {
      // Lines that follow one another are one slice.
      const from = this.#lineAt(index);
      while (index < names.length && this.#isUsual(index) && isKeptAt(names, index, isKept)) index++;
      lines += this.#text.slice(from, this.#lineAt(index));
      if (isKeptAt(names, index, isKept)) lines += `${names[index]?.text}: ${this.valueAt(index)}\r\n`;
    }
    return lines;
  }

  #lineAt(index: number): number {
    return this.#marks[index * MARKS] ?? this.#end;
  }

  /** Whether the line is written as `linesOf` writes it. */
  #isUsual(index: number): boolean {
    const nameLength = this.names[index]?.text.length ?? 0;
    const valueAt = this.#marks[index * MARKS + 1] ?? 0;
    const valueEnd = this.#marks[index * MARKS + 2] ?? 0;
    return (
      valueAt === this.#lineAt(index) + nameLength + 2 &&
      valueEnd + 2 === this.#lineAt(index + 1) &&
      this.#text.charCodeAt(valueAt - 1) === SPACE
    );
  }
}

function isKeptAt(names: readonly FieldName[], index: number, isKept: (name: FieldName) => boolean): boolean {
  const name = names[index];
  return name !== undefined && isKept(name);
}
