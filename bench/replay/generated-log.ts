/** A made-up access log of Weir: a busy day of Accounts of very different sizes, with bursts. */
import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import type { Writable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { MemoryStore } from '../../src/store/memory-store.ts';

interface GeneratedLog {
  readonly lines: number;
  readonly accounts: number;
  /** Each Account belongs to one of them. */
  readonly organizations: number;
  readonly startMs: number;
  readonly spanMs: number;
  readonly random: () => number;
  /** Points per second that the made-up gateway admitted to each bucket of an Account. */
  readonly limit: number;
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const OPERATIONS = [
  { method: 'GET', path: '/v3/payments/payees', operation: 'listPayees', kind: 'read', cost: 1 },
  { method: 'GET', path: '/v3/payments/payables', operation: 'listPayables', kind: 'read', cost: 1 },
  { method: 'GET', path: '/v3/search/payables', operation: 'searchPayables', kind: 'read', cost: 1 },
  {
    method: 'POST',
    path: '/v3/payments/payables/payable_2001/open',
    operation: 'openPayable',
    kind: 'write',
    cost: 1,
  },
  { method: 'POST', path: '/v3/platform/sessions', operation: 'createSession', kind: 'write', cost: 10 },
] as const;

/** Shares of the traffic, in the order of OPERATIONS. */
const SHARES = [0.5, 0.75, 0.85, 0.98, 1];

const LABEL = 'This log is generated: no client sent any of its requests.';

/** Yields lines in the order of their writing; before the requests, one that says that they are made up. */
function* linesOf(log: GeneratedLog): Generator<string> {
  const { lines, accounts, startMs, spanMs, random } = log;
  yield `${JSON.stringify({ level: 30, time: startMs, msg: LABEL })}\n`;
  const gateway = createGateway(log.limit);
  let written = 0;
  while (written < lines) {
    const account = Math.floor(accounts * random() ** 3);
    // A burst keeps its Account; most requests come alone.
    const atMs = startMs + dayTime(written / lines) * spanMs;
    const burst = random() < 0.02 ? 5 + Math.floor(random() * 40) : 1;
    for (let index = 0; index < burst && written < lines; index++) {
      const chargedMs = atMs + index * random();
      yield `${JSON.stringify(lineOf(log, written, account, chargedMs, gateway))}\n`;
      written += 1;
    }
  }
}

type MadeUpGateway = ReturnType<typeof createGateway>;

/** Decides as a gateway of this limit would have. */
function createGateway(limit: number) {
  let nowUs = 0;
  const store = new MemoryStore(() => nowUs);
  return (key: string, cost: number, atUs: number): boolean => {
    nowUs = Math.max(nowUs, atUs);
    return store.charge({ buckets: [{ key, limit, windowSeconds: 1 }], cost }).outcome === 'admitted';
  };
}

/** Bends time so that the middle of the day has the most traffic. */
function dayTime(share: number): number {
  return share + Math.sin(2 * Math.PI * share) / 9;
}

function lineOf(
  { random, organizations }: GeneratedLog,
  number: number,
  account: number,
  chargedMs: number,
  gateway: MadeUpGateway,
): object {
  const drawn = random();
  const at = SHARES.findIndex((share) => drawn < share);
  const { method, path, operation, kind, cost } = OPERATIONS[at] ?? OPERATIONS[0];
  const chargedAtUs = Math.round(chargedMs * 1000);
  const isAdmitted = gateway(`${account} ${kind}`, cost, chargedAtUs);
  const upstreamMs = isAdmitted ? Math.round(4_000 + 30_000 * random() ** 4) / 1000 : 0;
  return {
    level: 30,
    time: Math.round(chargedMs + upstreamMs),
    pid: 7,
    hostname: 'weir-7d9f6c5b4-x2x7q',
    requestId: `01934d2e-7c1a-7000-8000-${number.toString(16).padStart(12, '0')}`,
    method,
    path,
    operation,
    account: `acct_${account + 1}`,
    organization: `org_${(account % organizations) + 1}`,
    principal: `svc_${account + 1}`,
    kind,
    cost,
    chargedAtUs,
    ...(isAdmitted
      ? { outcome: 'admitted', status: 200, upstreamStatus: 200, upstreamMs }
      : { outcome: 'denied', reason: 'RateLimitExceeded', bucket: `account-${kind}`, status: 429 }),
    chargeMs: 0.042,
    totalMs: Math.round((upstreamMs + 0.4) * 1000) / 1000,
    msg: 'request',
  };
}

/** Characters that are written at once. */
const PIECE = 1_000_000;

/** Writes a generated log; compressed if the file's name ends with .gz. */
export async function writeLog(file: string, log: GeneratedLog): Promise<void> {
  const disk = createWriteStream(file);
  const written = once(disk, 'finish');
  const stream = file.endsWith('.gz') ? compressedInto(disk) : disk;
  let text = '';
  for (const line of linesOf(log)) {
    text += line;
    if (text.length < PIECE) continue;
    if (!stream.write(text)) await once(stream, 'drain');
    text = '';
  }
  stream.end(text);
  await written;
}

function compressedInto(disk: WriteStream): Writable {
  const gzip = createGzip({ level: 9 });
  gzip.pipe(disk);
  return gzip;
}
