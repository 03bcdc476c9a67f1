import type { Fields, FieldValues } from '../../../domain/field-name.ts';
import { isFieldValue, isToken } from '../grammar.ts';
import { fieldName } from './field-lines.ts';
import type { FieldName } from './field-names.ts';

/** A usual line has the name, a colon, one space, the value and CRLF: where its value is follows from where the line is. */
const BEFORE_VALUE = 2;
const BEHIND_VALUE = 2;

/** A field line with its CRLF. @throws TypeError if the field could break its line */
function fieldLine(name = '', value = ''): string {
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
  /** Where the lines begin. With further numbers for each field, a usual head outgrows the first array of V8: 340 bytes more. */
  readonly #lines: number[] = [];
  /** Of values that are padded in another way: where they begin and end, by index. */
  #padded: Map<number, readonly [from: number, to: number]> | undefined = undefined;
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
      section.add(name, at);
      at += name.text.length + BEFORE_VALUE + (fields[index + 1] ?? '').length + BEHIND_VALUE;
    }
    return section;
  }

  /** Adds a field, whose value is padded with one space before it. */
  add(name: FieldName, lineAt: number): void {
    this.names.push(name);
    this.#lengths |= 1 << name.lower.length;
    this.#lines.push(lineAt);
  }

  /** Adds a field whose value is padded in another way. */
  addPadded(name: FieldName, lineAt: number, valueAt: number, valueEnd: number): void {
    this.#padded ??= new Map();
    this.#padded.set(this.names.length, [valueAt, valueEnd]);
    this.add(name, lineAt);
  }

  get size(): number {
    return this.names.length;
  }

  valueAt(index: number): string {
    const padded = this.#padded?.get(index);
    if (padded !== undefined) return this.#text.slice(padded[0], padded[1]);
    const nameLength = this.names[index]?.text.length ?? 0;
    return this.#text.slice(
      this.#lineAt(index) + nameLength + BEFORE_VALUE,
      this.#lineAt(index + 1) - BEHIND_VALUE,
    );
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
    // A request is asked for twenty names, and does not have most of them.
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
    return this.#lines[index] ?? this.#end;
  }

  /** Whether the line is written as `linesOf` writes it. */
  #isUsual(index: number): boolean {
    return this.#padded?.has(index) !== true;
  }
}

function isKeptAt(names: readonly FieldName[], index: number, isKept: (name: FieldName) => boolean): boolean {
  const name = names[index];
  return name !== undefined && isKept(name);
}

/** The head of a request as it was read. */
export interface RequestHead extends Fields {
  readonly method: string;
  /** As sent. */
  readonly target: string;
  /** Such as `1.1`. */
  readonly httpVersion: string;
  readonly fields: FieldSection;
  /** The values by lower-case name. */
  readonly headers: FieldValues;
}

/** Whether a body follows the head (RFC 9112 section 6.3). */
export function hasBody(head: Fields): boolean {
  const length = head.field('content-length');
  return head.field('transfer-encoding') !== undefined || (length !== undefined && Number(length) !== 0);
}

/** Whether the client waits for a 100 before it sends the body. */
export function isContinueExpected(head: RequestHead): boolean {
  return head.httpVersion === '1.1' && head.field('expect')?.toLowerCase() === '100-continue';
}
