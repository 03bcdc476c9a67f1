import { Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { FieldLines } from '../../../src/http/message/head/field-lines.ts';
import { FieldSection } from '../../../src/http/message/head/field-section.ts';
import { ClientConnection } from '../../../src/http/server/client-connection.ts';
import { EdgeExchange } from '../../../src/http/server/edge/edge-exchange.ts';
import { PlainHead } from '../../../src/http/server/edge/plain-head.ts';
import { TwoReaders } from '../../fixtures/read-connection.ts';

const readers = new TwoReaders();
afterAll(() => readers.close());

const GET = 'GET /a HTTP/1.1\r\nHost: weir\r\n\r\n';
const post = (body: string, fields = '') =>
  `POST /a HTTP/1.1\r\nHost: weir\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`;

/** Each of these texts arrives in a read of its own, and is answered before the next. */
const inTurn = (...texts: readonly string[]) =>
  texts.flatMap((text) => [Buffer.from(text, 'latin1'), 'answer' as const]);

describe('the edge serves', () => {
  it.each([
    ['requests one after the other', [GET, GET, GET], 3],
    [
      'every method',
      ['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE'].map((method) => GET.replace('GET', method)),
      5,
    ],
    ['a short body, and what follows it', [post('{"a":1}'), GET], 2],
    ['a body of 16 KiB', [post('b'.repeat(16_384))], 1],
    ['a longer one, and what follows it', [post('b'.repeat(16_385)), post('c'.repeat(300_000)), GET], 3],
    [
      'responses without a length, and without a body',
      [GET.replace('/a', '/parts'), GET.replace('/a', '/none'), GET],
      3,
    ],
    [
      'a request that asks to keep the connection',
      [GET.replace('Host', 'Connection: Keep-Alive\r\nHost')],
      1,
    ],
  ])('%s', async (_, texts, count) => {
    const { atEdge, requests, isClosed } = await readers.atEdge(inTurn(...texts));
    expect([requests.length, atEdge, isClosed]).toEqual([count, count, true]);
  });

  it('a body that comes in parts behind its head', async () => {
    const text = post('some parts');
    const parts = [text.slice(0, -10), text.slice(-10, -3), text.slice(-3)].map((part) => Buffer.from(part));
    const { atEdge, requests } = await readers.atEdge([...parts, 'answer', Buffer.from(GET), 'answer']);
    expect([requests.length, atEdge]).toEqual([2, 2]);
  });

  it.each([
    ['each in a read of its own', [post('1'), post('2'), post('3')]],
    ['in one read', [post('1') + post('2') + post('3')]],
    ['behind long bodies', [post('1'.repeat(20_000)) + post('2'.repeat(200_000)) + post('3')]],
  ])('requests that are sent ahead of their turn, %s, each in its turn', async (_, texts) => {
    const steps = texts.map((text) => Buffer.from(text));
    const { atEdge, requests, text } = await readers.atEdge(steps);
    expect([requests.length, atEdge, text.match(/HTTP\/1\.1 200/g)?.length]).toEqual([3, 3, 3]);
    expect(requests.map((request) => /"(\d)\1*",true\]$/.exec(request)?.[1])).toEqual(['1', '2', '3']);
  });
});

describe("Node's server reads, for good,", () => {
  it.each([
    ['a head in two parts', [GET.slice(0, 9), GET.slice(9)]],
    ['a chunked body', ['POST /a HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n']],
    ['a field that occurs twice', [GET.replace('Host', 'Cookie: a\r\nCookie: b\r\nHost')]],
    ['an expectation', [post('a', 'Expect: nothing\r\n')]],
    ['HTTP/1.0', [GET.replace('1.1', '1.0').replace('Host', 'Connection: keep-alive\r\nHost')]],
    ['a target in absolute form', [GET.replace('/a', 'http://weir/a')]],
    [
      'an upgrade that it does not know',
      [GET.replace('Host', 'Connection: Upgrade\r\nUpgrade: other\r\nHost')],
    ],
    ['TE', [GET.replace('Host', 'TE: trailers\r\nHost')]],
    ['a method of its own', [GET.replace('GET', 'PURGE')]],
  ])('%s', async (_, texts) => {
    const { atEdge, requests } = await readers.atEdge(inTurn(...texts, GET));
    expect(requests.length).toBeGreaterThan(0);
    expect(atEdge).toBe(0);
  });
});

describe('a response at the edge', () => {
  it.each(['GET', 'HEAD', 'POST'])('to %s is the one of Node, to the byte', async (method) => {
    const steps = inTurn(GET.replace('GET', method));
    const { text } = await readers.atEdge(steps);
    expect(text).toMatch(
      /^HTTP\/1\.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\nKeep-Alive: timeout=72\r\n/,
    );
    expect(text).toBe((await readers.atNode(steps)).text);
  });

  it.each(['/none', '/parts'])('that a ServerResponse writes has the same lines: %s', async (target) => {
    const steps = inTurn(GET.replace('/a', target));
    const linesOf = ({ text }: { readonly text: string }) => text.split('\r\n').sort();
    expect(linesOf(await readers.atEdge(steps))).toEqual(linesOf(await readers.atNode(steps)));
  });
});

describe('a field that would break its line', () => {
  it.each([
    ['a line break in a value', ['X-A', '1\r\nX-B: 2']],
    ['a control octet in a value', ['X-A', '\0']],
    ['a character that is not one octet', ['X-A', '\u0141']],
    ['a space in a name', ['X A', '1']],
  ])('is not written: %s', (_, fields) => {
    const stalls = { sendTimeoutMs: 1_000, bodyTimeoutMs: 1_000, halfClose: 'abort' } as const;
    const connection = new ClientConnection(new Socket(), stalls, false, 0);
    const head = new PlainHead('GET', '/', FieldSection.of([]), 0);
    const exchange = new EdgeExchange(connection, head, Buffer.alloc(0), {
      keepAliveLines: '',
      onAnswered() {},
    });
    expect(() => exchange.begin(200, FieldLines.of([...fields, 'Content-Length', '0']))).toThrow(TypeError);
    expect(exchange.hasBegun).toBe(false);
  });
});
