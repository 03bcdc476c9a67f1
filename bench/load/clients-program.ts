/**
 * A program: clients that share the limit of one Account, each with a fetch of its own. They send at a rate, in an open loop, or as much
 * as they can. Says as JSON how many responses were a 200, a 429 or something else.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { weirFetch } from '../../examples/client/weir-fetch.mjs';

/** The argument of the program, as JSON. */
export interface Crowd {
  readonly url: string;
  readonly clients: number;
  /** Requests per second of all; undefined for as many as they can send. */
  readonly rate: number | undefined;
  /** Whether they use the kit. Otherwise they only wait for `Retry-After`. */
  readonly hasKit: boolean;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface Responses {
  served: number;
  refused: number;
  failed: number;
}

const RETRIES = 5;
/** Within which the clients start. */
const START_MS = 10_000;

const crowd: Crowd = JSON.parse(process.argv[2] ?? '{}');
const headers = { Authorization: 'Bearer token-1', 'X-Service-Account': 'acct_1', 'X-Organization': 'org_1' };
let counts: Responses = { served: 0, refused: 0, failed: 0 };

for (let client = 0; client < crowd.clients; client++) void run();
await sleep(crowd.warmUpSeconds * 1_000);
counts = { served: 0, refused: 0, failed: 0 };
await sleep(crowd.seconds * 1_000);
process.stdout.write(JSON.stringify(counts), () => process.exit());

async function run(): Promise<void> {
  const send = crowd.hasKit ? weirFetch({ fetch: counted, retries: RETRIES }) : patient;
  const request = () => send(crowd.url, { headers }).catch(() => undefined);
  await sleep(Math.random() * START_MS);
  if (crowd.rate === undefined) for (;;) await request();
  const meanMs = (crowd.clients * 1_000) / crowd.rate;
  for (let dueMs = performance.now(); ; dueMs -= Math.log(1 - Math.random()) * meanMs) {
    await sleep(Math.max(0, dueMs - performance.now()));
    void request();
  }
}

async function patient(url: string, init: RequestInit): Promise<Response> {
  for (let left = RETRIES; ; left--) {
    const response = await counted(url, init);
    if (response.status !== 429 || left === 0) return response;
    await sleep(Number(response.headers.get('retry-after')) * 1_000);
  }
}

async function counted(input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(input, init);
    await response.arrayBuffer();
    if (response.status === 200) counts.served++;
    else if (response.status === 429) counts.refused++;
    else counts.failed++;
    return response;
  } catch (error) {
    counts.failed++;
    throw error;
  }
}
