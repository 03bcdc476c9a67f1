/** What strangers send, and what a hostile upstream answers, to make the gateway work. All text is latin1: one character is one octet. */
import { chunks, fieldsOf, get, head, LAST_CHUNK, letters, namesOf, post, TOKEN } from './messages.ts';

export interface HostileInput {
  readonly name: string;
  /** Where it is sent: the clients' port unless this says otherwise. */
  readonly port?: 'decisions';
  /** The bytes of one request, in the writes that send them. `serial` is another number each time, for names that nobody has seen. */
  request(serial: number): string | readonly string[];
  /** The bytes of the upstream's response, if it is what is hostile. */
  response?(serial: number): string;
  /** The status of each response. */
  readonly status: number;
  /** Responses to one input: 1 unless it has several requests. */
  readonly responses?: number;
  /** Each is the first of its connection. */
  readonly isFirst?: boolean;
}

/** `listen.maxHeaderBytes`. */
const HEAD_BYTES = 16_384;
/** Two whose order normalisation has to change. */
const MARKS = '%CC%95%CC%A3';
const DECISIONS = { port: 'decisions' } as const;
/** The unit: what a client sends that only wants its answer. */
export const PLAIN: HostileInput = input('a plain GET', 200, () => get('/things'));

export const INPUTS: readonly HostileInput[] = [
  ...paths(),
  ...heads(),
  ...values(),
  ...responses(),
  ...bodies(),
  ...connections(),
];

type More = Omit<HostileInput, 'name' | 'status' | 'request'>;

function input(
  name: string,
  status: number,
  request: HostileInput['request'],
  more: More = {},
): HostileInput {
  return { name, status, request, ...more };
}

function paths(): HostileInput[] {
  const marks = `/a${MARKS.repeat(1_300)}/`;
  // The rest stays below the bounds of a path: 8,192 characters, and 30 marks in a row.
  const runs = `/${`a${MARKS.repeat(15)}`.repeat(44)}/`;
  const question = { token: 'token-1', method: 'OPTIONS', path: marks };
  const questions = JSON.stringify({ decisions: Array.from({ length: 60 }, () => question) });
  const path = (name: string, status: number, part: string, method = 'GET') =>
    input(name, status, () => head(method, `/a${part.repeat(Math.floor(8_100 / part.length))}`, TOKEN));
  return [
    input('OPTIONS, a path of combining marks, no token', 400, () => head('OPTIONS', marks)),
    input('GET, a path of combining marks, no token', 400, () => head('GET', marks)),
    input('GET, a path of combining marks', 400, () => get(marks)),
    input(
      '/ext-authz, a path of combining marks',
      400,
      () => head('OPTIONS', `/ext-authz${marks}`),
      DECISIONS,
    ),
    input('/decide, 60 paths of combining marks', 200, () => post('/decide', questions), DECISIONS),
    input('OPTIONS, combining marks in runs of 30, no token', 200, () => head('OPTIONS', runs)),
    input(
      '/ext-authz, combining marks in runs of 30',
      200,
      () => head('OPTIONS', `/ext-authz${runs}`),
      DECISIONS,
    ),
    path('a path of segments', 200, '/a'),
    path('a path of segments with suffixes', 200, '/a.b'),
    path('a path of scripts', 200, '/a.php'),
    path('a path of dots', 200, '.a'),
    path('a path of escaped letters', 200, '%61'),
    path('a path of escaped slashes', 400, '%2F'),
    path('a path of ligatures', 400, '%EF%AC%80'),
    path('a path of accented letters', 200, '%C3%A9'),
    path('OPTIONS, a path of accented letters', 200, '%C3%A9', 'OPTIONS'),
    path('a path of matrix parameters', 400, ';a=b'),
  ];
}

function heads(): HostileInput[] {
  const many = (serial: number) => get('/things', fieldsOf(serial, HEAD_BYTES - 200));
  return [
    input('16 KB of unseen field names', 431, many),
    input('16 KB of unseen field names, new connection', 431, many, { isFirst: true }),
    input('122 unseen field names', 200, (serial) => get('/things', fieldsOf(serial, 122 * 11))),
    input('122 unseen field names, no token', 401, (serial) =>
      head('GET', '/things', fieldsOf(serial, 122 * 11)),
    ),
    input('Connection with 7,000 names', 431, () => get('/things', `Connection: ${letters(7_000)}\r\n`)),
    input('Connection with 2,000 unseen names', 431, (serial) =>
      get('/things', `Connection: ${namesOf(serial, 2_000).join(',')}\r\n`),
    ),
    input('15 KB of spaces around values', 200, () => get('/things', `A:${' '.repeat(15_000)}b\r\n`)),
    input('a head of 1 KB in writes of one byte', 200, () => [
      ...get('/things', `A: ${'a'.repeat(850)}\r\n`),
    ]),
    input('a WebSocket upgrade with 2,000 extensions', 200, () =>
      get(
        '/things',
        `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: ${'a;b=c, '.repeat(2_000)}a\r\n`,
      ),
    ),
  ];
}

/** Values of fields and of the query that the gateway reads. */
function values(): HostileInput[] {
  const field = (name: string, value: string) => () => get('/things', `${name}: ${value}\r\n`);
  const query = (text: string) => () => get(`/things?${text}`);
  const preflight = `Origin: https://app.example.com\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: ${'a,'.repeat(7_500)}b\r\n`;
  const names = (count: number) => Array.from({ length: count }, (_, index) => index.toString(36));
  return [
    input(
      'X-Forwarded-For with 1,400 trusted proxies',
      200,
      field('X-Forwarded-For', '127.0.0.1, '.repeat(1_400)),
    ),
    input('X-Forwarded-For of 15 KB of garbage', 200, field('X-Forwarded-For', ':,'.repeat(7_500))),
    input('Forwarded of 15 KB', 200, field('Forwarded', 'for="[::1]";by=a, '.repeat(900))),
    input('a Cookie of 15 KB', 200, field('Cookie', 'a=b; '.repeat(3_000))),
    input('Accept with 1,500 types', 200, field('Accept', '*/*;q=0.1,'.repeat(1_500))),
    input('a Tracestate of 15 KB', 200, field('Tracestate', 'a=b,'.repeat(3_700))),
    input('a bearer token of 15 KB', 401, () =>
      head('GET', '/things', `Authorization: Bearer ${'a.'.repeat(7_500)}\r\n`),
    ),
    input('a preflight with 7,500 names', 204, () => head('OPTIONS', '/things', preflight)),
    input('a query of one undeclared parameter, 7,500 times', 422, query('a&'.repeat(7_500))),
    input(
      'a query of 1,200 names in a deep object',
      422,
      query(
        names(1_200)
          .map((name) => `filter[${name}]=`)
          .join('&'),
      ),
    ),
    input('a query of one list with 3,700 items', 422, query('id=&'.repeat(3_700))),
    input('a query of 5,000 escapes', 200, query(`name=${'%61'.repeat(5_000)}`)),
    input('a query against a pattern that backtracks', 422, query(`name=${'a'.repeat(15_000)}!`)),
  ];
}

/** The client asks plainly, and the upstream answers like this. */
function responses(): HostileInput[] {
  const answer = (name: string, status: number, response: HostileInput['response'] & object) =>
    input(name, status, () => get('/things'), { response });
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n';
  const empty = 'Content-Length: 0\r\n\r\n';
  const trailers = (serial: number, bytes: number) =>
    `${chunked}\r\n1\r\nx\r\n0\r\n${fieldsOf(serial, bytes)}\r\n`;
  return [
    answer(
      'a response with 3.8 KB of unseen names',
      200,
      (serial) => `HTTP/1.1 200 OK\r\n${fieldsOf(serial, 3_800)}${empty}`,
    ),
    answer(
      'a response with 16 KB of unseen names',
      503,
      (serial) => `HTTP/1.1 200 OK\r\n${fieldsOf(serial, HEAD_BYTES - 100)}${empty}`,
    ),
    answer(
      'a response with 1,000 unseen names',
      200,
      (serial) => `HTTP/1.1 200 OK\r\n${fieldsOf(serial, 998 * 11)}${empty}`,
    ),
    // Its head has left before the trailers are read.
    answer('a response with 16 KB of trailers', 0, (serial) => trailers(serial, HEAD_BYTES - 100)),
    answer('a response with 1,000 trailers', 200, (serial) => trailers(serial, 1_000 * 11)),
    answer('a response of 60 KB in 1-byte chunks', 200, () => `${chunked}\r\n${chunks(60_000)}`),
    answer(
      'a response with Vary of 15 KB',
      200,
      () => `HTTP/1.1 200 OK\r\nVary: ${'a,'.repeat(7_500)}b\r\n${empty}`,
    ),
  ];
}

function bodies(): HostileInput[] {
  const list = (item: string, count: number) => `[${`${item},`.repeat(count - 1)}${item}]`;
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  const json = (name: string, path: string, body: string) => input(name, 422, () => post(path, body));
  const inChunks = (name: string, status: number, path: string, token?: string) =>
    input(name, status, () => post(path, undefined, chunks(60_000), token));
  return [
    json('JSON, a list of 5,001 empty objects for oneOf', '/one-of', list('{}', 5_001)),
    json('JSON, a list of 50,000 empty objects for oneOf', '/one-of', list('{}', 50_000)),
    json('JSON, lists in lists, 7,500 deep', '/deep', nested(7_500)),
    json('JSON, a list of 5,000 wrong items', '/numbers', list('""', 5_000)),
    json('JSON, one name 2,500 times', '/one-of', `{${'"a":1,'.repeat(2_500)}"a":1}`),
    json('JSON, a list of 7,500 equal items for uniqueItems', '/unique', list('1', 7_500)),
    inChunks('a body of 60 KB in 1-byte chunks, forwarded', 200, '/things'),
    inChunks('a body of 60 KB in 1-byte chunks, validated', 422, '/numbers'),
    inChunks('a body of 60 KB in 1-byte chunks, no token', 401, '/things', ''),
    input('a request with 16 KB of trailers', 431, (serial) =>
      post('/things', undefined, `1\r\nx\r\n0\r\n${fieldsOf(serial, HEAD_BYTES - 200)}\r\n`),
    ),
    input('a body in 3 chunks with 4 KB of extensions', 200, () =>
      post('/things', undefined, `${`1${';a=b'.repeat(1_000)}\r\nx\r\n`.repeat(3)}${LAST_CHUNK}`),
    ),
  ];
}

function connections(): HostileInput[] {
  const short = 'GET /things HTTP/1.1\r\nHost: a\r\n\r\n';
  return [
    input('a plain GET, new connection', 200, () => get('/things'), { isFirst: true }),
    input('100 pipelined requests without a token', 401, () => short.repeat(100), { responses: 100 }),
    input('1 KB of empty lines', 200, () => '\r\n'.repeat(500) + get('/things')),
    input('16 KB without a line', 400, () => 'a'.repeat(HEAD_BYTES), { isFirst: true }),
  ];
}
