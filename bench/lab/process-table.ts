/** What Linux says of a process and its children. */
import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts CPU time in hundredths of a second (USER_HZ is 100 on every architecture of today). */
const US_PER_TICK = 10_000;
const BYTES_PER_KIB = 1024;

/** CPU time spent so far by these processes and all their children, in microseconds. */
export function cpuUs(pids: readonly number[]): number {
  return sum(family(pids).map(ticksOf)) * US_PER_TICK;
}

/** System calls that read or write, by these processes and all their children so far: files, sockets, pipes. */
export function readsAndWrites(pids: readonly number[]): number {
  return sum(family(pids).map(readsAndWritesOf));
}

/** Resident memory of these processes and all their children; memory that they share counts once for each. */
export function residentBytes(pids: readonly number[]): number {
  return sum(family(pids).map(residentOf));
}

/** Open file descriptors of these processes and all their children: files, sockets, pipes. */
export function openHandles(pids: readonly number[]): number {
  return sum(family(pids).map((pid) => namesIn(`/proc/${pid}/fd`).length));
}

function family(pids: readonly number[]): number[] {
  return pids.flatMap((pid) => [pid, ...family(childrenOf(pid))]);
}

function childrenOf(pid: number): number[] {
  const tasks = namesIn(`/proc/${pid}/task`);
  return tasks.flatMap((task) => {
    const children = textOf(`/proc/${pid}/task/${task}/children`).trim();
    return children === '' ? [] : children.split(' ').map(Number);
  });
}

function ticksOf(pid: number): number {
  const stat = textOf(`/proc/${pid}/stat`);
  // The program's name, in parentheses, may hold spaces: fields are counted from its end (proc(5): 14 and 15).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
}

function readsAndWritesOf(pid: number): number {
  const calls = textOf(`/proc/${pid}/io`).matchAll(/^sysc[rw]: (\d+)$/gm);
  return sum([...calls].map(([, count]) => Number(count)));
}

function residentOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0) * BYTES_PER_KIB;
}

/** Empty if the process has ended. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
