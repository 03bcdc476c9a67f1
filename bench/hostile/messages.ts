/** Requests, and parts of them. All text is latin1: one character is one octet. */
import { requestOf } from '../load/client.ts';

export const LAST_CHUNK = '0\r\n\r\n';
export const TOKEN = 'Authorization: Bearer token-1\r\n';

export function head(method: string, target: string, fields = ''): string {
  return `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields}\r\n`;
}

export function get(target: string, fields = ''): string {
  return requestOf(1, target).replace('\r\n\r\n', `\r\n${fields}\r\n`);
}

/** With a body, or with what follows `Transfer-Encoding: chunked`. */
export function post(target: string, body?: string, inChunks = '', token = TOKEN): string {
  const framing = body === undefined ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`;
  return `${head('POST', target, `${token}Content-Type: application/json\r\n${framing}\r\n`)}${body ?? inChunks}`;
}

export function chunks(count: number): string {
  return '1\r\n1\r\n'.repeat(count) + LAST_CHUNK;
}

/** Names that no earlier serial had, all different. */
export function namesOf(serial: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${(serial * 4_096 + index + 36 ** 6).toString(36)}`);
}

/** As many lines of 11 bytes as there is room for. */
export function fieldsOf(serial: number, bytes: number): string {
  return namesOf(serial, Math.floor(bytes / 11))
    .map((name) => `${name}:a\r\n`)
    .join('');
}

export function letters(count: number): string {
  return Array.from({ length: count }, (_, index) => (10 + (index % 26)).toString(36)).join(',');
}
