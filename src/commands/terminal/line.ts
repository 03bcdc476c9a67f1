import { styleText } from 'node:util';
import { printable } from '../../domain/printable.ts';

export type Style = Parameters<typeof styleText>[0];

/** The parts of a terminal that decide about colours. */
type Terminal = Pick<NodeJS.WriteStream, 'isTTY' | 'hasColors'>;

/**
 * One line of output, whose parts may have a style on terminals with colours. Whatever values are in it, it stays one line, and only its
 * styles reach a terminal as escapes.
 */
export type Line = string | readonly (string | { readonly style: Style; readonly text: string })[];

/** @param change applied to each text of the line, after what is unprintable has been replaced */
export function lineText(
  line: Line,
  stream: Terminal,
  change: (text: string) => string = (text) => text,
): string {
  const parts = typeof line === 'string' ? [line] : line;
  return parts
    .map((part) => {
      if (typeof part === 'string') return change(printable(part));
      return coloured(stream, part.style, change(printable(part.text)));
    })
    .join('');
}

/** The text in a style, if the stream is a terminal that has colours and NO_COLOR is not set. */
export function coloured(stream: Terminal, style: Style, text: string): string {
  // hasColors() respects NO_COLOR, FORCE_COLOR and TERM.
  return stream.isTTY && stream.hasColors() ? styleText(style, text, { validateStream: false }) : text;
}

/** Cells in columns as wide as the longest of each; the first row is the heading. */
export function tableLines(rows: readonly (readonly string[])[]): readonly Line[] {
  const widths: number[] = [];
  const cells = rows.map((row) => row.map(printable));
  for (const row of cells) {
    for (const [column, { length }] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, length);
  }
  return cells.map((row, index) => {
    const padded = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    const text = padded.join('  ').trimEnd();
    return index === 0 ? [{ style: 'bold', text }] : text;
  });
}
