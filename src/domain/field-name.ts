/**
 * A header field's name as CGI and WSGI servers tell names apart: in lower case, with `-` for every character that is no
 * letter or digit. Most of them fold `_` only; lighttpd and old versions of Apache fold all.
 */
export function foldName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');
}
