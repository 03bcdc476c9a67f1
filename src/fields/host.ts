/** RFC 9112 section 3.2: uri-host and port, and nothing that a URL parser could split differently. */
const SANE_HOST = /^(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/;

/** Whether a Host field has one meaning for all parsers. */
export function isHost(value: string): boolean {
  return SANE_HOST.test(value);
}
