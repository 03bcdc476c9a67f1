import { describe, expect, it } from 'vitest';
import { fieldName } from '../../../../../src/http/message/head/field-lines.ts';
import { FieldName } from '../../../../../src/http/message/head/field-names.ts';
import { readFields, textHead } from '../../../../../src/http/message/head/read-fields.ts';
import { readPlainHead } from '../../../../../src/http/server/edge/plain-head.ts';
import { HeadScanner } from '../../../../../src/http/server/node/head-scanner.ts';
import { expectLinearTime } from '../../../../fixtures/growth.ts';

let count = 0;
const unseen = (size: number): string => {
  let lines = '';
  for (let index = 0; index < size; index++) lines += `x${(count++).toString(36)}:\r\n`;
  return lines;
};
const requestOf = (lines: string) => Buffer.from(`GET / HTTP/1.1\r\nHost: weir\r\n${lines}\r\n`);

describe('fields of different names', () => {
  it('are compared with one another in linear time', () => {
    const limits = { maxHeaderBytes: 10_000_000, maxHeaderFields: 1_000_000 };
    expectLinearTime((size) => {
      const bytes = requestOf(unseen(size));
      return () => expect(readPlainHead(bytes, limits)?.fields.size).toBe(size + 1);
    }, 500);
  });

  it('are not read above the limit, where another line could be malformed', () => {
    const bytes = requestOf(`${'a: b\r\n'.repeat(9)}not a field\r\n`);
    const lines = bytes.subarray('GET / HTTP/1.1\r\n'.length, -2).toString();
    expect(() => readFields(textHead(lines), 0, lines.length, 10)).toThrow('too many fields');
    expect(() => readFields(textHead(lines), 0, lines.length, 11)).toThrow('a line that is not a field');
  });

  it.each([1, 7, 10_000])(
    'are found where the first one above the limit ends, in reads of %i bytes',
    (step) => {
      const bytes = requestOf(unseen(200));
      const scanner = new HeadScanner(100);
      let read = 0;
      for (let end: number | undefined; end === undefined && read < bytes.length; ) {
        const part = bytes.subarray(read, read + step);
        end = scanner.read(part);
        read += end ?? part.length;
      }
      expect(scanner.isOverfull).toBe(true);
      expect(bytes.toString('latin1', 0, read).split('\r\n')).toHaveLength(1 + 101 + 1);
    },
  );

  it.each([1, 7, 10_000])('are not above the limit if there are as many, in reads of %i bytes', (step) => {
    const bytes = requestOf(unseen(99));
    const scanner = new HeadScanner(100);
    let end: number | undefined;
    for (let at = 0; at < bytes.length; at += step) end = scanner.read(bytes.subarray(at, at + step));
    expect([scanner.isOverfull, end]).toEqual([false, bytes.length % step || Math.min(step, bytes.length)]);
  });
});

describe('names', () => {
  it('that are used again stay known, however many others come once', () => {
    fieldName('X-Ours');
    const ours = fieldName('X-Ours');
    for (let stranger = 0; stranger < 20_000; stranger++) fieldName(`x-stranger-${stranger}`);
    expect(fieldName('X-Ours')).toBe(ours);
  });

  it('mean the same, known or not', () => {
    for (const name of [
      'Host',
      'X_Account_Id',
      'Content-Type',
      'x-http-method-override',
      'X-Forwarded-For',
      'ETag',
    ]) {
      for (let times = 0; times < 3; times++) expect(fieldName(name)).toEqual(new FieldName(name));
    }
  });
});
