/**
 * Keeps passwords of URLs out of messages. Whatever comes before the last `@` may be one, with any character in it: a URL
 * that is refused is often refused because its password was not percent-encoded.
 */
const MASK = '***@';

/** One value, such as a setting, without the credentials that it may hold as a URL. */
export function maskUrl(value: string): string {
  const end = value.lastIndexOf('@') + 1;
  if (end === 0) return value;
  const [scheme = ''] = /^[a-z][a-z0-9+.-]*:\/\/|^/i.exec(value) ?? [];
  const isUrl = scheme !== '' || value.slice(0, end).includes(':');
  return isUrl ? scheme + MASK + value.slice(end) : value;
}

/** A text, such as a message or a log line, without the credentials of the URLs in it. */
export function maskUrls(text: string): string {
  return text.includes('@') ? text.replace(URL_WITH_CREDENTIALS, `$1${MASK}`) : text;
}

const URL_WITH_CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s"'<>]*@/gi;
