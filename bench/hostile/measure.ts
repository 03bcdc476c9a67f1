import type { Running } from '../contestants/contestant.ts';
import { cpuUs } from '../lab/process-table.ts';
import { Client } from '../load/client.ts';
import { type HostileInput, PLAIN } from './inputs.ts';
import type { Stage } from './stage.ts';

const CONNECTIONS = 8;
const MOST_REQUESTS = 5_000;
/** Between two looks at the CPU time. */
const LOOK_MS = 5;
/** An input above it is sent alone: several at once would only wait for each other. */
const HEAVY_US = 20_000;
/** IPv4 and TCP: what a packet costs its sender besides its bytes. */
const PACKET_HEADER_BYTES = 40;

/** What one input costs, divided by its requests. CPU times are in microseconds. */
export interface Figures {
  readonly name: string;
  /** Of the last response. 0 if the connection was closed without one. */
  readonly status: number;
  /** What a stranger has to send for it. */
  readonly kib: number;
  readonly us: number;
  /** A plain GET, measured just before. */
  readonly plainUs: number;
  /** Undefined at the decisions port, and without nginx. */
  readonly nginxUs: number | undefined;
}

/** Measures the input, and a plain GET beside it, because a busy machine changes its pace. */
export async function figuresOf(stage: Stage, input: HostileInput, budgetUs: number): Promise<Figures> {
  const { weir, nginx, decisionsPort } = stage;
  stage.prepare(PLAIN);
  const plain = await costOf(weir, PLAIN, budgetUs);
  stage.prepare(input);
  const target = input.port === 'decisions' ? { ...weir, port: decisionsPort } : weir;
  const { us, status } = await costOf(target, input, budgetUs);
  const beside = input.port === 'decisions' || nginx === undefined ? undefined : nginx;
  const nginxUs = beside === undefined ? undefined : (await costOf(beside, input, budgetUs)).us;
  return { name: input.name, status, kib: kibOf(input), us, plainUs: plain.us, nginxUs };
}

/** CPU time of a KiB, in times of a plain GET's. What has less than a KiB counts as one. */
export function timesPlainPerKib({ us, plainUs, kib }: Figures): number {
  return us / plainUs / Math.max(1, kib);
}

function kibOf({ request, response, responses = 1 }: HostileInput): number {
  const writes = [response?.(0) ?? request(0)].flat();
  return writes.reduce((bytes, { length }) => bytes + length + PACKET_HEADER_BYTES, 0) / 1024 / responses;
}

interface Cost {
  readonly us: number;
  readonly status: number;
}

/** Sends the input until the program has spent the budget of CPU time, after half of the budget unmeasured. */
async function costOf(
  { pids, port }: Pick<Running, 'pids' | 'port'>,
  input: HostileInput,
  budgetUs: number,
): Promise<Cost> {
  let status = 0;
  /** @returns CPU time of a request */
  const spend = async (connections: number, mostUs: number, mostRequests: number) => {
    const startUs = cpuUs(pids);
    let requests = 0;
    let lookedMs = performance.now();
    let isOver = false;
    const converse = async () => {
      const client = new Client(port);
      while (!isOver && requests < mostRequests) {
        requests++;
        status = await send(client, input);
        if (performance.now() - lookedMs < LOOK_MS) continue;
        lookedMs = performance.now();
        isOver = cpuUs(pids) - startUs >= mostUs;
      }
      client.close();
    };
    await Promise.all(Array.from({ length: connections }, converse));
    return (cpuUs(pids) - startUs) / requests / (input.responses ?? 1);
  };
  const us = await spend(1, budgetUs, 1);
  if (us > budgetUs) return { us, status };
  const connections = us > HEAVY_US ? 1 : CONNECTIONS;
  await spend(connections, budgetUs / 2, MOST_REQUESTS);
  return { us: await spend(connections, budgetUs, MOST_REQUESTS), status };
}

/** Sends the input once. @returns the status of its last response */
export async function statusFor(stage: Stage, input: HostileInput): Promise<number> {
  stage.prepare(input);
  const client = new Client(input.port === 'decisions' ? stage.decisionsPort : stage.weir.port);
  const status = await send(client, input);
  client.close();
  return status;
}

/** Counts all inputs, so that each has names of its own. */
let serial = 0;

function send(client: Client, { request, responses, isFirst = false }: HostileInput): Promise<number> {
  if (isFirst) client.close();
  return client.send(request(serial++), responses);
}
