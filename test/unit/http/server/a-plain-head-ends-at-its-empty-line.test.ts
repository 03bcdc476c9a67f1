import { expect, it } from 'vitest';
import { readPlainHead } from '../../../../src/http/server/edge/plain-head.ts';

it.each([48, 2_048, 10_000])('in a head of about %i bytes, with a body or without', (length) => {
  for (let more = 0; more < 8; more++) {
    const long = 'x'.repeat(length + more - 40);
    const head = Buffer.from(`GET / HTTP/1.1\r\nHost: weir\r\nLong: ${long}\r\n\r\n`);
    const limits = { maxHeaderBytes: head.length, maxHeaderFields: 2 };
    for (const body of ['', 'body', 'b'.repeat(20_000)]) {
      const bytes = Buffer.concat([head, Buffer.from(body)]);
      expect(readPlainHead(bytes, limits)?.length).toBe(head.length);
      expect(readPlainHead(bytes, { ...limits, maxHeaderBytes: 100_000 })?.length).toBe(head.length);
      expect(readPlainHead(bytes, { ...limits, maxHeaderBytes: head.length - 1 })).toBeUndefined();
      expect(readPlainHead(bytes.subarray(0, head.length - 1), limits)).toBeUndefined();
    }
  }
});
