import { afterAll, expect, it } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { mutated, type Next, openFuzz, pick } from '../../fixtures/fuzz.ts';
import { type Reading, type Step, TwoReaders } from '../../fixtures/read-connection.ts';

const { cases: CASES, seed: SEED, isLong, next } = openFuzz(1_500, 116_160);

const plain = new TwoReaders();
const secure = new TwoReaders(newCertificate());
afterAll(() => {
  plain.close();
  secure.close();
});

const TARGETS = [
  '/',
  '/a/b',
  '/none?x=1',
  '/parts',
  '/a%20b?c=d&e=[]{}|"^`',
  "/~_-.!$&'()*+,;=:@",
  '/a?b?c',
] as const;
const NAMES = [
  'X-A',
  'x_b',
  'Accept',
  'Cookie',
  'Authorization',
  'User-Agent',
  'Content-Type',
  'X-Content-Length',
] as const;
const VALUES = ['a', 'text/plain', '"x, y"', 'a=b; c="d"', 'caf\xe9', '', '0', 'x\ty', 'Bearer t'] as const;
const PADDINGS = [' ', ' ', ' ', '', '  ', '\t'] as const;

/** Fields of different names, because most clients send each once. */
function fieldLines(next: Next): string {
  let lines = '';
  const first = next(NAMES.length);
  for (let index = next(5); index > 0; index--) {
    const name = NAMES[(first + index) % NAMES.length];
    lines += `${name}:${pick(next, PADDINGS)}${pick(next, VALUES)}${pick(next, ['', '', '', ' ', '\t'])}\r\n`;
  }
  return lines;
}

/** A body that could be taken for a request. */
function bodyOf(next: Next): string {
  return pick(next, [
    '',
    'x',
    '{"a":1}',
    'GET /smuggled HTTP/1.1\r\nHost: weir\r\n\r\n',
    '\r\n\r\n',
    '0\r\n\r\n',
  ]).repeat(1 + next(2));
}

/** A request that the edge should take. */
function plainRequest(next: Next): string {
  const method = pick(next, ['GET', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']);
  const head = `${method} ${pick(next, TARGETS)} HTTP/1.1\r\n${fieldLines(next)}${pick(next, ['Host', 'host'])}: weir\r\n`;
  const kept = pick(next, ['', '', '', 'Connection: keep-alive\r\n', 'connection: Keep-Alive\r\n']);
  if (next(3) > 0) return `${head}${kept}\r\n`;
  const body = bodyOf(next);
  return `${head}${kept}Content-Length: ${body.length}\r\n${fieldLines(next).replaceAll(/^[A-Z]/gm, 'Z')}\r\n${body}`;
}

/** A valid request that is for Node's server. */
function otherRequest(next: Next): string {
  const body = bodyOf(next);
  return pick(next, [
    `POST / HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`.replace(
      '\r\n0\r\n\r\n0\r\n\r\n',
      '\r\n0\r\n\r\n',
    ),
    'GET http://weir/a HTTP/1.1\r\nHost: weir\r\n\r\n',
    'GET / HTTP/1.0\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: weir\r\nCookie: a\r\nCookie: b\r\n\r\n',
    'GET /a#b HTTP/1.1\r\nHost: weir\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: weir\r\nTE: trailers\r\n\r\n',
    '\r\nGET / HTTP/1.1\r\nHost: weir\r\n\r\n',
    `PUT / HTTP/1.1\r\nHost: weir\r\nContent-Length: 20000\r\n\r\n${'b'.repeat(20_000)}`,
    `GET / HTTP/1.1\r\nHost: weir\r\nX-A: ${'a'.repeat(1_950 + next(60))}\r\n\r\n`,
  ]);
}

const PIECES = [
  ...[
    '\r\n',
    '\n',
    '\r',
    ' ',
    '\t',
    '\0',
    ':',
    ',',
    '#',
    '\x7f',
    '\x80',
    '\xff',
    '\x0b',
    '0',
    '-',
    '+',
    '"',
    '\r\n ',
  ],
  ...[
    '\r\n\r\n',
    'HTTP/1.1',
    ' HTTP/1.0',
    'HTTP/1.1\r\n',
    'chunked',
    'Content-Length: 5\r\n',
    'Content-Length:\t5\r\n',
  ],
  ...[
    'Content-Length: 0\r\n',
    'content-length: 1, 1\r\n',
    'Content-Length: +1\r\n',
    'Content-Length : 1\r\n',
  ],
  ...[
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding : chunked\r\n',
    'transfer-encoding: identity\r\n',
    ' folded\r\n',
  ],
  ...[
    'Host: other\r\n',
    'Connection: close\r\n',
    'Connection: x-a\r\n',
    '__proto__: 1\r\n',
    'Set-Cookie: a\r\n',
  ],
  ...['Expect: nothing\r\n', 'Keep-Alive: 5\r\n', 'x'.repeat(2_100), 'GET / HTTP/1.1\r\nHost: weir\r\n\r\n'],
] as unknown as readonly [string, ...string[]];

/** The requests of a connection; some of them are broken. */
function connectionOf(next: Next, mutations: number): string[] {
  const messages = Array.from({ length: 1 + next(4) }, () =>
    next(12) === 0 ? otherRequest(next) : plainRequest(next),
  );
  for (let done = 0; done < mutations; done++) {
    const index = next(messages.length);
    messages[index] = mutated(next, messages[index] ?? '', PIECES, (draw) => 2 * draw(2));
  }
  return messages;
}

/** Reads of these messages: as sent, several in one, split anywhere or at every byte; and answers between them. */
function stepsOf(next: Next, messages: readonly string[]): Step[] {
  const pieces = piecesOf(next, messages).filter((piece) => piece !== '');
  const holdsBack = next(4) === 0;
  return pieces.flatMap((piece): Step[] => {
    const bytes = Buffer.from(piece, 'latin1');
    return holdsBack && next(3) > 0 ? [bytes] : [bytes, 'answer'];
  });
}

function piecesOf(next: Next, messages: readonly string[]): string[] {
  switch (next(24)) {
    case 0:
      return [...messages.join('').slice(0, 600)];
    case 1:
    case 2:
      return [messages.join('')];
    case 3:
    case 4:
    case 5:
    case 6:
      // Between head and body, as many clients write them.
      return messages.flatMap((message) => {
        const end = message.indexOf('\r\n\r\n') + 4;
        return [message.slice(0, end), message.slice(end)];
      });
    case 7:
    case 8:
    case 9:
      return messages.flatMap((message) => {
        const at = next(message.length + 1);
        return [message.slice(0, at), message.slice(at)];
      });
    default:
      return [...messages];
  }
}

/** The fields about the connection are left out: Node's server may have read ahead, and know that it will be closed. */
const verdictOf = ({ requests, text, isClosed }: Reading) => ({
  requests,
  text: text.replaceAll(/Connection: .*?\r\n|Keep-Alive: .*?\r\n/g, ''),
  isClosed,
});

/** What was served, and how it was answered, in order; without the answer to bytes that are no request. */
const servedIn = ({ requests, text }: Reading) => {
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
  return requests.map((request, index) => `${request} ${statuses[index]}`);
};

const beginsWith = (list: readonly string[], beginning: readonly string[]) =>
  beginning.every((item, index) => item === list[index]);

/** Whether bytes arrive before the requests in front of them have been answered. */
const isAhead = (steps: readonly Step[]) =>
  steps.some((step, index) => step !== 'answer' && steps[index + 1] !== 'answer');

/**
 * Reads the same steps twice. What was sent ahead of its turn is read by Node's server at once, and by the edge when it is its turn. If
 * it ends with an error, those requests in front of the error are dropped that still wait when it is read, and the connection may close
 * without another answer. Such readings agree if each served the first of the requests that Node's server serves one by one.
 */
async function compare(readers: TwoReaders, steps: readonly Step[], context: string): Promise<Reading> {
  const ours = await readers.atEdge(steps);
  const theirs = await readers.atNode(steps);
  if (JSON.stringify(verdictOf(ours)) === JSON.stringify(verdictOf(theirs))) return ours;
  if (isAhead(steps) && ours.isClosed) {
    const inTurn = await readers.atNode(
      steps.flatMap((step): Step[] => (step === 'answer' ? [] : [step, 'answer'])),
    );
    const all = servedIn(inTurn);
    if (beginsWith(all, servedIn(ours)) && beginsWith(all, servedIn(theirs))) return ours;
  }
  expect(verdictOf(ours), `${context}: ${asText(steps)}`).toEqual(verdictOf(theirs));
  return ours;
}

const asText = (steps: readonly Step[]) =>
  steps.map((step) => (step === 'answer' ? step : JSON.stringify(step.toString('latin1')))).join(' ');

/** A handshake takes as long as many plain connections. */
it.each([
  ['plain', plain, CASES],
  ['TLS', secure, Math.ceil(CASES / 5)],
] as const)(
  'of thousands of %s connections, each is read and answered as by Node alone',
  {
    timeout: 120_000 + CASES * 10,
  },
  async (kind, readers, cases) => {
    const counts = { requests: 0, atEdge: 0, mutatedAtEdge: 0, refused: 0 };
    for (let count = 0; count < cases; count++) {
      const mutations = [0, 1, 1, 1, 2, 6][next(6)] ?? 0;
      const steps = stepsOf(next, connectionOf(next, mutations));
      const ours = await compare(readers, steps, `${kind}, seed ${SEED}, case ${count}`);
      counts.requests += ours.requests.length;
      counts.atEdge += ours.atEdge;
      if (mutations > 0) counts.mutatedAtEdge += ours.atEdge;
      if (/HTTP\/1\.1 4/.test(ours.text)) counts.refused++;
    }
    // Neither so tame that it finds nothing nor so wild that the edge serves nothing.
    expect(counts.mutatedAtEdge, JSON.stringify(counts)).toBeGreaterThan(cases / 4);
    expect(counts.refused, JSON.stringify(counts)).toBeGreaterThan(cases / 5);
    if (isLong) console.log(JSON.stringify({ kind, seed: SEED, ...counts }));
  },
);
