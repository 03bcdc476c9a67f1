import { describe, expect, it } from 'vitest';
import { readWithOurs } from '../../fixtures/read-response.ts';

const read = (text: string, method = 'GET') => readWithOurs(Buffer.from(text, 'latin1'), { method });
const OK = 'HTTP/1.1 200 OK\r\n';

describe('a head', () => {
  it.each([
    ['a length and chunks', `${OK}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['chunks and a length', `${OK}Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n`],
    ['two lengths', `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`],
    ['the same length twice', `${OK}Content-Length: 1\r\nContent-Length: 1\r\n\r\n`],
    ['a list of lengths', `${OK}Content-Length: 1, 1\r\n\r\n`],
    ['a length behind two spaces', `${OK}Content-Length:  1\r\n\r\n`],
    ['a length behind a tab', `${OK}Content-Length:\t1\r\n\r\n`],
    ['a length with a space behind it', `${OK}Content-Length: 1 \r\n\r\n`],
    ['a length with a sign', `${OK}Content-Length: +1\r\n\r\n`],
    ['a negative length', `${OK}Content-Length: -1\r\n\r\n`],
    ['a hexadecimal length', `${OK}Content-Length: 0x1\r\n\r\n`],
    ['an empty length', `${OK}Content-Length:\r\n\r\n`],
    ['a length beyond what numbers hold', `${OK}Content-Length: 99999999999999999999\r\n\r\n`],
    ['another coding', `${OK}Transfer-Encoding: gzip\r\n\r\n`],
    ['a coding before chunked', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n`],
    ['a coding behind chunked', `${OK}Transfer-Encoding: chunked, identity\r\n\r\n`],
    ['chunked twice', `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['an empty coding', `${OK}Transfer-Encoding:\r\n\r\n`],
    ['a coding with a tab behind it', `${OK}Transfer-Encoding: chunked\t\r\n\r\n`],
    ['a coding behind two spaces', `${OK}Transfer-Encoding:  chunked\r\n\r\n`],
    ['a coding with a control octet', `${OK}Transfer-Encoding: \x0bchunked\r\n\r\n`],
    ['a folded line', `${OK}X-A: a\r\n b\r\n\r\n`],
    ['a folded first line', `${OK} X-A: a\r\n\r\n`],
    ['a space before the colon', `${OK}Content-Length : 1\r\n\r\n`],
    ['a field without a name', `${OK}: a\r\n\r\n`],
    ['a field without a colon', `${OK}X-A\r\n\r\n`],
    ['a bare line feed', `${OK}X-A: a\nContent-Length: 1\r\n\r\n`],
    ['a bare carriage return', `${OK}X-A: a\rContent-Length: 1\r\n\r\n`],
    ['a NUL', `${OK}X-A: a\0b\r\n\r\n`],
    ['a DEL', `${OK}X-A: a\x7fb\r\n\r\n`],
    ['an escape in the reason', 'HTTP/1.1 200 O\x1bK\r\n\r\n'],
    ['an umlaut in a name', `${OK}X-\xe4: a\r\n\r\n`],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a status below 100', 'HTTP/1.1 099 Odd\r\n\r\n'],
    ['another version', 'HTTP/1.2 200 OK\r\n\r\n'],
    ['HTTP/2', 'HTTP/2.0 200 OK\r\n\r\n'],
    ['lower case', 'http/1.1 200 OK\r\n\r\n'],
    ['two spaces', 'HTTP/1.1  200 OK\r\n\r\n'],
    ['an empty line before it', '\r\nHTTP/1.1 200 OK\r\n\r\n'],
    ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'],
    ['an interim response with a length', 'HTTP/1.1 103 Early Hints\r\nContent-Length: 1\r\n\r\n'],
    ['an interim response with chunks', 'HTTP/1.1 102 Processing\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['no end of interim responses', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(40)],
    ['16 KiB in one field', `${OK}X-A: ${'a'.repeat(16_384)}\r\n\r\n`],
    ['16 KiB in many fields', `${OK}${'X-A: a\r\n'.repeat(2_048)}\r\n`],
    ['no end', `${OK}${'X-A: a\r\n'.repeat(3_000)}`],
  ])('with %s', (_, text) => {
    const { response, refusal } = read(text);
    expect(response).toBeUndefined();
    expect(refusal).toEqual(expect.any(String));
  });

  it('is refused at its first octets where it is not HTTP', () => {
    expect(read('SSH-2.0-OpenSSH_9.2\r\n').refusal).toBe('not HTTP/1.1');
    expect(read('H2').refusal).toBe('not HTTP/1.1');
  });

  it.each([
    ['no reason', 'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n', 200],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', 200],
    ['a length without a space before it', 'HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n', 200],
    ['an unusual status', 'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n', 999],
    ['obs-text', 'HTTP/1.1 200 \xfc\r\nX-A: \xfc\r\nContent-Length: 0\r\n\r\n', 200],
  ])('with %s is taken', (_, text, status) => {
    expect(read(text).response?.status).toBe(status);
  });
});

describe('chunks', () => {
  const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;

  it.each([
    ['a bare line feed behind the size', '5\nhello\r\n0\r\n\r\n'],
    ['a bare line feed behind the data', '5\r\nhello\n0\r\n\r\n'],
    ['a space behind the size', '5 \r\nhello\r\n0\r\n\r\n'],
    ['a space before the size', ' 5\r\nhello\r\n0\r\n\r\n'],
    ['a sign', '+5\r\nhello\r\n0\r\n\r\n'],
    ['a prefix', '0x5\r\nhello\r\n0\r\n\r\n'],
    ['no size', '\r\nhello\r\n0\r\n\r\n'],
    ['a size beyond what numbers hold', 'fffffffffffffffff\r\nhello\r\n0\r\n\r\n'],
    ['a chunk longer than its size', '4\r\nhello\r\n0\r\n\r\n'],
    ['an empty extension', '5;\r\nhello\r\n0\r\n\r\n'],
    ['an extension with a line feed', '5;a="\n"\r\nhello\r\n0\r\n\r\n'],
    ['an endless extension', `5;a=${'b'.repeat(5_000)}\r\nhello\r\n0\r\n\r\n`],
    ['a bare line feed at the end', '5\r\nhello\r\n0\r\n\n'],
    ['a folded trailer', '0\r\nX-A: a\r\n b\r\n\r\n'],
    ['a length among the trailers', '0\r\nContent-Length: 1\r\n\r\n'],
    ['a coding among the trailers', '0\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['endless trailers', `0\r\n${'X-A: a\r\n'.repeat(3_000)}`],
  ])('with %s', (_, body) => {
    const { response, refusal } = read(CHUNKED + body);
    expect(response).toBeUndefined();
    expect(refusal).toEqual(expect.any(String));
  });

  it('that end too early do not complete a response', () => {
    expect(read(`${CHUNKED}5\r\nhello\r\n`).response).toBeUndefined();
    expect(read(`${CHUNKED}5\r\nhello\r\n0\r\n`).response).toBeUndefined();
  });

  it('with extensions and trailers are decoded', () => {
    const { response } = read(
      `${CHUNKED}5;a;b="c \\" d"\r\nhello\r\n00006\r\n world\r\n0;x=y\r\nX-A: 1\r\n\r\n`,
    );
    expect(response).toMatchObject({ body: 'hello world', trailers: ['X-A', '1'] });
  });
});

describe('where a body ends', () => {
  it.each([
    ['the answer to HEAD', `${OK}Content-Length: 5\r\n\r\n`, 'HEAD', ''],
    ['the answer to HEAD, in chunks', `${OK}Transfer-Encoding: chunked\r\n\r\n`, 'HEAD', ''],
    ['a 204', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', 'GET', ''],
    ['a 304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', 'GET', ''],
    ['a stated length', `${OK}Content-Length: 5\r\n\r\nhello`, 'GET', 'hello'],
  ])('%s: what is behind it does not belong to it', (_, text, method, body) => {
    const reading = read(`${text}HTTP/1.1 200 poison`, method);
    expect(reading).toMatchObject({ response: { body }, consumed: text.length, neededClose: false });
  });

  it('without a length: the end of the connection', () => {
    expect(read(`${OK}\r\nhello`)).toMatchObject({ response: { body: 'hello' }, neededClose: true });
  });
});
