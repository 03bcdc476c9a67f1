import { expect, it } from 'vitest';
import { mutated, type Next, openFuzz, pick } from '../../fixtures/fuzz.ts';
import { type OwnReading, readWithNode, readWithOurs } from '../../fixtures/read-response.ts';

const { cases: CASES, seed: SEED, isLong, next } = openFuzz(3_000, 102_590);

const VALUES = [
  'a',
  'text/plain',
  '"x, y"',
  'a=b; c="d"',
  'caf\xe9',
  '',
  '0',
  'timeout=5',
  'x\ty',
  'é',
] as const;
const NAMES = [
  'X-A',
  'x_b',
  'Server',
  'Set-Cookie',
  'Date',
  'ETag',
  'Connection-X',
  'Content-Lengthy',
] as const;
const EXTENSIONS = ['', '', '', ';a', ';a=b', ';a="b c"', ';a=b;c'] as const;

function fieldLines(next: Next): string {
  let lines = '';
  for (let count = next(5); count > 0; count--) {
    const padding = pick(next, [' ', '', '  ', '\t', ' \t ']);
    lines += `${pick(next, NAMES)}:${padding}${pick(next, VALUES)}${pick(next, ['', '', ' ', '\t'])}\r\n`;
  }
  return lines;
}

function chunked(next: Next, body: string): string {
  let text = '';
  for (let at = 0; at < body.length; ) {
    const size = 1 + next(Math.min(40, body.length - at));
    const hex = pick(next, ['', '0', '000']) + size.toString(16);
    text += `${next(2) === 0 ? hex.toUpperCase() : hex}${pick(next, EXTENSIONS)}\r\n${body.slice(at, at + size)}\r\n`;
    at += size;
  }
  return `${text}0${pick(next, EXTENSIONS)}\r\n${next(4) === 0 ? 'X-T: 1\r\nX-U:\r\n' : ''}\r\n`;
}

/** A response that nothing is wrong with. */
function validResponse(next: Next): string {
  let text = '';
  for (let count = next(8) === 0 ? 1 + next(2) : 0; count > 0; count--) {
    text += `HTTP/1.1 ${pick(next, ['100 Continue', '102 Processing', '103 Early Hints'])}\r\n${fieldLines(next)}\r\n`;
  }
  const body = 'x\r\n0\r\n\r\nHTTP/1.1 200'.slice(0, next(22)).repeat(next(3));
  text += `HTTP/1.1 ${pick(next, ['200 OK', '200 ', '200', '404 Not Found', '201 Cr\xe9\xe9', '503 x\ty'])}\r\n`;
  text += fieldLines(next);
  const connection = pick(next, [
    '',
    '',
    'Connection: keep-alive\r\n',
    'connection: Close\r\n',
    'Connection: a, close\r\n',
  ]);
  switch (next(4)) {
    case 0:
      return `${text}${connection}Transfer-Encoding: chunked\r\n\r\n${chunked(next, body)}`;
    case 1:
      return `${text}${connection}transfer-encoding:Chunked\r\n${fieldLines(next)}\r\n${chunked(next, body)}`;
    case 2:
      return `${text}Connection: close\r\n\r\n${body}`;
    default:
      return `${text}${connection}Content-Length: ${body.length}\r\n${fieldLines(next)}\r\n${body}`;
  }
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
    ';',
    ',',
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
    'HTTP/1.0',
    'chunked',
    'gzip, ',
    'Content-Length: 5\r\n',
    'Content-Length:\t5\r\n',
  ],
  ...[
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding : chunked\r\n',
    'transfer-encoding: identity\r\n',
    ' folded\r\n',
  ],
  ...[
    '204',
    '304',
    '101',
    '0x5',
    '5 \r\n',
    'fffffffffffffffff',
    'x'.repeat(50),
    ';',
    '; a=b',
    ';a="',
    'Content-Length: 1, 1\r\n',
  ],
] as [string, ...string[]];

const asText = (bytes: Buffer) => JSON.stringify(bytes.toString('latin1'));
const verdictOf = ({ response, consumed, neededClose }: OwnReading) =>
  JSON.stringify(response === undefined ? 'refused' : { response, consumed, neededClose });

/** The same bytes in whatever pieces: one verdict. */
function readInPieces(bytes: Buffer, method: string, next: Next): OwnReading {
  const whole = readWithOurs(bytes, { method });
  const everyByte = Array.from({ length: bytes.length }, (_, index) => index);
  const aFew = everyByte.filter(() => next(20) === 0);
  for (const cuts of [everyByte, aFew]) {
    const inPieces = readWithOurs(bytes, { method, cuts });
    if (verdictOf(inPieces) !== verdictOf(whole)) {
      expect(verdictOf(inPieces), `${asText(bytes)} cut at ${cuts}`).toBe(verdictOf(whole));
    }
  }
  return whole;
}

type Verdict = 'taken' | 'refused by both' | 'refused by us alone';

/** One response in front of both readers. */
async function compare(next: Next, mutations: number): Promise<Verdict> {
  let text = validResponse(next);
  for (let done = 0; done < mutations; done++) text = mutated(next, text, PIECES);
  const bytes = Buffer.from(text, 'latin1');
  const method = next(10) === 0 && mutations > 0 ? 'HEAD' : 'GET';
  const { response, refusal, consumed, neededClose } = readInPieces(bytes, method, next);
  if (response === undefined) {
    if (mutations === 0) expect.fail(`${refusal} in the valid ${asText(bytes)}`);
    const theirs = await readWithNode(bytes, { method, closes: true });
    return theirs === undefined ? 'refused by both' : 'refused by us alone';
  }
  const theirs = await readWithNode(bytes.subarray(0, consumed), { method, closes: neededClose });
  if (JSON.stringify(theirs) !== JSON.stringify(response)) expect(response, asText(bytes)).toEqual(theirs);
  return 'taken';
}

it(`of ${CASES} responses, whatever we take llhttp reads in the same way`, {
  timeout: 120_000 + CASES * 5,
}, async () => {
  const counts = { taken: 0, 'refused by both': 0, 'refused by us alone': 0 };
  for (let count = 0; count < CASES; count++) {
    const verdict = await compare(next, [0, 1, 1, 1, 1, 2][next(6)] ?? 0).catch((error: Error) => {
      throw new Error(`seed ${SEED}: ${error.message}`, { cause: error });
    });
    counts[verdict]++;
  }
  // Neither too tame to find anything nor so wild that both refuse everything.
  expect(counts.taken, JSON.stringify(counts)).toBeGreaterThan(CASES / 4);
  expect(counts['refused by both'], JSON.stringify(counts)).toBeGreaterThan(CASES / 20);
  if (isLong) console.log(JSON.stringify({ seed: SEED, ...counts }));
});
