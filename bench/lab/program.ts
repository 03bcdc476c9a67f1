import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** A process that the benchmark started. */
export interface Program {
  readonly pid: number;
  /** SIGTERM, and SIGKILL if it has not ended by then: after 5 s unless another time is given. */
  stop(graceMs?: number): Promise<void>;
}

export interface ProgramOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** Cores to stay on, as taskset takes them; anywhere when undefined. */
  readonly cores: string | undefined;
  /** Ready when this port takes connections. */
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Takes what the program writes to its standard output. */
  readonly onOutput?: ((text: string) => void) | undefined;
  /** A session of its own, so that Linux's autogroups give it a share of the CPU as large as any other session's. */
  readonly hasOwnSession?: boolean;
}

/** Nothing that was started outlives the benchmark, however it ends. */
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/** A million identities take half of it to read. */
const START_MS = 120_000;
const STOP_MS = 5_000;
const LAST_WORDS = 2_000;

/** Starts a program and waits for its port. An early end is an error with the program's last words. */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const { command, args, cores, port, env, onOutput, hasOwnSession = false } = options;
  const [program = command, ...rest] =
    cores === undefined ? [command, ...args] : ['taskset', '-c', cores, command, ...args];
  const child = spawn(program, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: hasOwnSession,
    env: { ...process.env, ...env },
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  let words = '';
  const listen = (chunk: Buffer) => {
    words = (words + chunk.toString()).slice(-LAST_WORDS);
  };
  child.stdout.on('data', listen);
  if (onOutput !== undefined) child.stdout.on('data', (chunk: Buffer) => onOutput(chunk.toString('latin1')));
  child.stderr.on('data', listen);
  const spawned = once(child, 'spawn');
  await spawned;
  await untilListening(child, port, () => `${command} did not start:\n${words}`);
  return { pid: child.pid ?? 0, stop: (graceMs) => stop(child, graceMs) };
}

async function untilListening(child: ChildProcess, port: number, complaint: () => string): Promise<void> {
  const deadlineMs = Date.now() + START_MS;
  while (!(await isListening(port))) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(complaint());
    if (Date.now() > deadlineMs) {
      await stop(child);
      throw new Error(complaint());
    }
    await setTimeout(50);
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

async function stop(child: ChildProcess, graceMs = STOP_MS): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const hurry = new AbortController();
  await Promise.race([
    exited,
    setTimeout(graceMs, undefined, { signal: hurry.signal }).catch(() => undefined),
  ]);
  hurry.abort();
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL');
    await exited;
  }
}
