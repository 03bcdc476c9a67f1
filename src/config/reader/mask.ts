/**
 * Masks the credentials of URLs in messages. Everything before the last `@` is treated as credentials, whatever characters it
 * contains, because a URL is often rejected for the very reason that its password is not percent-encoded.
 */
const MASK = '***@';

/** A single value, such as a setting, with URL credentials masked. */
export function maskUrl(value: string): string {
  const end = value.lastIndexOf('@') + 1;
  const isUrl = value.slice(0, end).includes(':');
  return isUrl ? schemeOf(value) + MASK + value.slice(end) : value;
}

/**
 * A text, such as a message or a log line, with the credentials of all URLs in it masked. Runs in linear time, and without a regular
 * expression over a whole word: Node 20 once ended one over 10 MB with "Maximum call stack size exceeded".
 */
export function maskUrls(text: string): string {
  if (!text.includes('@') || !text.includes(':/')) return text;
  let masked = '';
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (!isDelimiter(text.charAt(at))) continue;
    masked += maskWord(text.slice(start, at)) + text.charAt(at);
    start = at + 1;
  }
  return masked + maskWord(text.slice(start));
}

function isDelimiter(character: string): boolean {
  return `"'<>`.includes(character) || character.trim() === '';
}

function maskWord(word: string): string {
  const end = word.lastIndexOf('@') + 1;
  const scheme = end === 0 ? '' : schemeOf(word);
  return scheme === '' || scheme.length > end ? word : scheme + MASK + word.slice(end);
}

/** The part before the authority, such as `redis://`, or empty. Path normalisation may have removed one slash. */
function schemeOf(text: string): string {
  const colon = text.indexOf(':/');
  return colon === -1 ? '' : text.slice(0, text[colon + 2] === '/' ? colon + 3 : colon + 2);
}
