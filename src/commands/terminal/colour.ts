import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** The parts of a terminal that decide about colours. */
export type Terminal = Pick<NodeJS.WriteStream, 'isTTY' | 'hasColors'>;

/** The text in a style, if the stream is a terminal that has colours and NO_COLOR is not set. */
export function coloured(stream: Terminal, style: Style, text: string): string {
  // hasColors() respects NO_COLOR, FORCE_COLOR and TERM.
  return stream.isTTY && stream.hasColors() ? styleText(style, text, { validateStream: false }) : text;
}
