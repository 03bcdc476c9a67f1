import { isFieldValue } from '../grammar.ts';
import { fieldName } from './name-table.ts';

/** Field lines to be written, as text. */
export class FieldLines {
  /** Each line with its CRLF. */
  text: string;
  hasDate = false;
  hasLength = false;
  /** False if a field could end its line: nothing may be written then. */
  isSafe = true;
  /** Whether one of the fields that were added is for the upstream client to write. */
  hasClients = false;

  /** @param lines lines that were checked when they were read */
  constructor(lines = '') {
    this.text = lines;
  }

  /** @param fields name, value, name, value */
  static of(fields: readonly string[]): FieldLines {
    const lines = new FieldLines();
    lines.addAll(fields);
    return lines;
  }

  add(name: string, value: string): void {
    const { isToken, isClients, lower, lineStart } = fieldName(name);
    if (!isToken || !isFieldValue(value)) this.isSafe = false;
    if (isClients) {
      this.hasClients = true;
      if (lower === 'content-length') this.hasLength = true;
    }
    this.text += `${lineStart}${value}\r\n`;
  }

  /** Notes whether a value could end its line. */
  check(value: string): void {
    if (!isFieldValue(value)) this.isSafe = false;
  }

  /**
   * Adds lines with constant names, and with values that were checked, or were made here. Every part that is joined
   * to a text takes 32 bytes of heap: several lines are best joined as one.
   */
  addLines(lines: string): void {
    this.text += lines;
  }

  /** @param fields name, value, name, value */
  addAll(fields: readonly string[]): void {
    for (let index = 0; index < fields.length; index += 2)
      this.add(fields[index] ?? '', fields[index + 1] ?? '');
  }

  /** Each name with its value. */
  get pairs(): [string, string][] {
    const lines = this.text.split('\r\n').slice(0, -1);
    return lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 2)];
    });
  }
}
