/**
 * Keeps passwords of URLs out of messages. Whatever comes before the last `@` may be one, with any character in it: a URL
 * that is refused is often refused because its password was not percent-encoded.
 */
const MASK = '***@';

/** One value, such as a setting, without the credentials that it may hold as a URL. */
export function maskUrl(value: string): string {
  const end = value.lastIndexOf('@') + 1;
  const isUrl = value.slice(0, end).includes(':');
  return isUrl ? schemeOf(value) + MASK + value.slice(end) : value;
}

/** A text, such as a message or a log line, without the credentials of the URLs in it. Takes time linear in its length. */
export function maskUrls(text: string): string {
  return text.includes('@') && text.includes(':/') ? text.replace(/[^\s"'<>]+/g, maskWord) : text;
}

function maskWord(word: string): string {
  const end = word.lastIndexOf('@') + 1;
  const scheme = end === 0 ? '' : schemeOf(word);
  return scheme === '' || scheme.length > end ? word : scheme + MASK + word.slice(end);
}

/** What comes before the authority, such as `redis://`; empty without one. A file's path may have lost a slash. */
function schemeOf(text: string): string {
  const colon = text.indexOf(':/');
  return colon === -1 ? '' : text.slice(0, text[colon + 2] === '/' ? colon + 3 : colon + 2);
}
