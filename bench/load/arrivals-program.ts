/**
 * A program: sends requests at given rates, whether or not the answers keep up, and says as JSON what came back.
 * Requests come in bunches, one a millisecond, and are timed from the moment at which their bunch was due to be
 * sent: a request that waits for a free connection because the gateway stands still waits on the gateway's account.
 */
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { percentile } from '../lab/turns.ts';
import type { ArrivalOptions, ArrivalResult } from './arrivals.ts';
import { isDegraded, MessageReader, requestOf, statusOf } from './client.ts';
import { fullestWindow } from './fullest-window.ts';

const TICK_MS = 1;
/** How long answers may take after the last request. */
const GRACE_MS = 2_000;

interface Line {
  readonly socket: Socket;
  dueMs: number;
}

interface Answer {
  readonly dueMs: number;
  readonly answeredMs: number;
  readonly status: number;
  readonly isDegraded: boolean;
}

const options: ArrivalOptions = JSON.parse(process.argv[2] ?? '{}');
const idle: Line[] = [];
const waiting: number[] = [];
const answers: Answer[] = [];
let sent = 0;

for (let opened = 0; opened < options.connections; opened++) idle.push(await open());
await warmUp();
for (const { seconds, rate } of options.phases) await run(seconds, rate);
await settle();
process.stdout.write(JSON.stringify(resultOf(answers)), () => process.exit());

async function open(): Promise<Line> {
  const socket = createConnection(options.port, '127.0.0.1');
  socket.setNoDelay(true).setEncoding('latin1');
  const line: Line = { socket, dueMs: 0 };
  const reader = new MessageReader();
  socket.on('data', (chunk) => {
    const [head] = reader.push(String(chunk));
    if (head === undefined) return;
    const times = { dueMs: line.dueMs, answeredMs: performance.now() };
    answers.push({ ...times, status: statusOf(head), isDegraded: isDegraded(head) });
    const next = waiting.shift();
    if (next === undefined) idle.push(line);
    else send(line, next);
  });
  await once(socket, 'connect');
  return line;
}

/** Sends requests without measuring them, until V8 has compiled this program and a gateway that stood idle. */
async function warmUp(): Promise<void> {
  await run(options.warmUpSeconds, options.phases[0]?.rate ?? 0);
  await settle();
  answers.length = 0;
  sent = 0;
}

async function settle(): Promise<void> {
  const deadlineMs = performance.now() + GRACE_MS;
  while (answers.length < sent && performance.now() < deadlineMs) await tick();
}

async function run(seconds: number, rate: number): Promise<void> {
  const startMs = performance.now();
  let due = 0;
  for (let nowMs = startMs; nowMs - startMs < seconds * 1000; nowMs = performance.now()) {
    const total = Math.ceil(((nowMs - startMs) * rate) / 1000);
    for (; due < total; due++) arrive(nowMs);
    await tick();
  }
}

function arrive(dueMs: number): void {
  sent++;
  const line = idle.shift();
  if (line === undefined) waiting.push(dueMs);
  else send(line, dueMs);
}

function send(line: Line, dueMs: number): void {
  line.dueMs = dueMs;
  line.socket.write(requestOf((((options.before ?? 0) + sent) % options.accounts) + 1, options.path));
}

function tick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, TICK_MS));
}

function resultOf(all: readonly Answer[]): ArrivalResult {
  const waits = all.map(({ dueMs, answeredMs }) => answeredMs - dueMs);
  const admitted = all.filter(({ status }) => status < 400);
  const counted = admitted.filter((answer) => !answer.isDegraded);
  const timed = ({ dueMs, answeredMs }: Answer) => ({ fromMs: dueMs, toMs: answeredMs, points: 1, limit: 1 });
  return {
    sent,
    answered: all.length,
    admitted: admitted.length,
    degraded: all.filter((answer) => answer.isDegraded).length,
    p50Ms: percentile(waits, 0.5),
    p99Ms: percentile(waits, 0.99),
    p999Ms: percentile(waits, 0.999),
    worstWindow: options.findsWorstWindow ? fullestWindow(counted.map(timed)) : 0,
  };
}
