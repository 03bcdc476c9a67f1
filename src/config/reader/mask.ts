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

/** A text, such as a message or a log line, with the credentials of all URLs in it masked. Runs in linear time. */
export function maskUrls(text: string): string {
  return text.includes('@') && text.includes(':/') ? text.replace(/[^\s"'<>]+/g, maskWord) : text;
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
