/**
 * A program: clients that share the limit of one Account, each with a fetch of its own. They are asked for requests at random
 * times. Prints as JSON how many responses were a 200, a 429 or something else.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { weirFetch } from '../../examples/client/weir-fetch.mjs';

/** The argument of the program, as JSON. */
export interface Crowd {
  readonly url: string;
  /** The number of the Account. */
  readonly account: number;
  readonly clients: number;
  readonly windowSeconds: number;
  /** How many requests they are asked for in each window. */
  readonly requests: number;
  /** Whether they use the kit. Otherwise they only wait for `Retry-After`. */
  readonly hasKit: boolean;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

type Send = (url: string, init: RequestInit) => Promise<Response>;

export interface Responses {
  served: number;
  refused: number;
  failed: number;
}

const RETRIES = 5;

const crowd: Crowd = JSON.parse(process.argv[2] ?? '{}');
const headers = {
  Authorization: `Bearer token-${crowd.account}`,
  'X-Service-Account': `acct_${crowd.account}`,
  'X-Organization': 'org_1',
};
let counts: Responses = { served: 0, refused: 0, failed: 0 };

const clients = Array.from({ length: crowd.clients }, () =>
  crowd.hasKit ? weirFetch({ fetch: counted, retries: RETRIES }) : patient,
);
void ask();
await sleep(crowd.warmUpSeconds * 1_000);
counts = { served: 0, refused: 0, failed: 0 };
await sleep(crowd.seconds * 1_000);
process.stdout.write(JSON.stringify(counts), () => process.exit());

/** Each request is for any client. Times are as random as in a Poisson process, but each window has the same number of requests. */
async function ask(): Promise<void> {
  const windowMs = crowd.windowSeconds * 1_000;
  for (let startMs = performance.now(); ; startMs += windowMs) {
    const times = Array.from({ length: crowd.requests }, () => startMs + Math.random() * windowMs);
    for (const dueMs of times.sort((one, other) => one - other)) {
      await sleep(Math.max(0, dueMs - performance.now()));
      const send = clients[Math.floor(Math.random() * clients.length)];
      if (send !== undefined) void request(send);
    }
  }
}

async function request(send: Send): Promise<void> {
  await send(crowd.url, { headers }).catch(() => undefined);
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
