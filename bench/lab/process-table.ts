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
  return sum(family(pids).map(handlesOf));
}

function family(pids: readonly number[]): number[] {
  return pids.flatMap((pid) => [pid, ...family(childrenOf(pid))]);
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) => {
      const children = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim();
      return children === '' ? [] : children.split(' ').map(Number);
    });
  } catch {
    return [];
  }
}

function ticksOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program's name, in parentheses, may hold spaces: fields are counted from its end (proc(5): 14 and 15).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0;
  }
}

function readsAndWritesOf(pid: number): number {
  try {
    const calls = readFileSync(`/proc/${pid}/io`, 'utf8').matchAll(/^sysc[rw]: (\d+)$/gm);
    return sum([...calls].map(([, count]) => Number(count)));
  } catch {
    return 0;
  }
}

function residentOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * BYTES_PER_KIB;
  } catch {
    return 0;
  }
}

function handlesOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
