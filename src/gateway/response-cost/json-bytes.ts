/** The bytes of JSON texts that their readers look for. */
export const QUOTE = 0x22;
export const COLON = 0x3a;
export const BACKSLASH = 0x5c;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

/** White space as RFC 8259 has it. */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
