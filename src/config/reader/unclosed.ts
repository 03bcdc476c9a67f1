/**
 * Finds the bracket or quote that was never closed in a YAML text that a parser has rejected. The parser reports only where it
 * noticed, which may be thousands of lines later, and reading the text again piece by piece would take quadratic time.
 *
 * An example: in `it's: { a: [1, "]" # {`, the apostrophe is within a plain scalar, `{` and `[` are open, `"]"` is a quoted scalar,
 * and the comment does not count. The innermost that is open is `[`.
 */

interface YamlToken {
  readonly text: string;
  readonly index: number;
}

/**
 * The tokens of a YAML text that matter: comments, quoted scalars (perhaps without an end), brackets, and the headers of block
 * scalars. Quotes and brackets are only indicators at the start of a scalar; elsewhere they are text.
 */
const TOKENS =
  /(?<=^|\s)#.*|(?=["'{[])(?<=(?:^|[{[,:?-])[ \t]*)(?:"(?:[^"\\]|\\[\s\S])*"?|'(?:[^']|'')*'?|[{[])|[{}[\]]|[|>][+-]?\d?[+-]?[ \t]*$/gm;

const CLOSERS: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/** The innermost bracket, or the quote, that is open at the end of the text, and its line, from 1; undefined if there is none. */
export function findUnclosed(text: string): { readonly text: string; readonly line: number } | undefined {
  const open: YamlToken[] = [];
  let skipTo = 0;
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    if (index < skipTo) continue;
    if (open.length === 0 && /^[|>]/.test(token)) skipTo = endOfBlock(text, index);
    else track(open, { text: token, index }, open.length > 0 || startsScalar(text, index));
  }
  const last = open.at(-1);
  return last && { text: last.text.charAt(0), line: text.slice(0, last.index).split('\n').length };
}

/** Adds what is opened, or removes the bracket that is closed. */
function track(open: YamlToken[], token: YamlToken, isIndicator: boolean): void {
  const { text } = token;
  if (/^["']/.test(text)) {
    if (text.length === 1 || !text.endsWith(text.charAt(0))) open.push(token);
  } else if (text in CLOSERS) {
    if (isIndicator) open.push(token);
  } else if (text === CLOSERS[open.at(-1)?.text ?? '']) open.pop();
}

/** Outside of brackets, a bracket within a plain scalar is text. */
function startsScalar(text: string, index: number): boolean {
  const before = text.slice(text.lastIndexOf('\n', index - 1) + 1, index);
  return /(?:^|[:?-])[ \t]*$/.test(before);
}

/** The end of the block scalar whose header is at `index`: the next line that is not indented more than the header's. */
function endOfBlock(text: string, index: number): number {
  const start = text.lastIndexOf('\n', index) + 1;
  const indent = text.slice(start).search(/[^ ]/);
  let end = lineEnd(text, index);
  while (end < text.length) {
    const next = lineEnd(text, end + 1);
    const line = text.slice(end + 1, next);
    if (line.trim() !== '' && line.search(/[^ ]/) <= indent) break;
    end = next;
  }
  return end;
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}
