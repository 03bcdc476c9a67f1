import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../../test/fixtures/free-port.ts';
import { findProgram } from '../lab/machine.ts';
import { startProgram } from '../lab/program.ts';

/** Where one replica may listen. */
export interface Slot {
  readonly name: string;
  readonly port: number;
  readonly adminPort: number;
}

/** The load balancer in front of the replicas. */
export interface Entry {
  readonly port: number;
  /** Waits until it sends requests to these slots and to no others. */
  untilServing(slots: readonly Slot[]): Promise<void>;
  stop(): Promise<void>;
}

/**
 * HAProxy, which sends requests to the replicas that are ready, as a Kubernetes Service does. It repeats no request,
 * so the client sees each request that a replica fails to answer. If it gets no connection to a replica, it tries another.
 */
export async function startEntry(folder: string, slots: readonly Slot[]): Promise<Entry> {
  const [port, statusPort] = [await freePort(), await freePort()];
  const file = join(folder, 'haproxy.cfg');
  const servers = slots.map(
    ({ name, port: at, adminPort }) =>
      `  server ${name} 127.0.0.1:${at} check port ${adminPort} inter 500ms fall 1 rise 1`,
  );
  writeFileSync(
    file,
    `global
  maxconn 8000
  nbthread 1
defaults
  mode http
  retries 2
  option redispatch 1
  timeout connect 10s
  timeout client 120s
  timeout server 60s
  timeout check 10s
frontend clients
  bind 127.0.0.1:${port}
  default_backend replicas
frontend status
  bind 127.0.0.1:${statusPort}
  stats enable
  stats uri /
backend replicas
  balance roundrobin
  option httpchk GET /readyz
${servers.join('\n')}
`,
  );
  const command = findProgram('haproxy') ?? 'haproxy';
  const args = ['-db', '-f', file];
  const program = await startProgram({ command, args, cores: undefined, port, hasOwnSession: true });
  const untilServing = async (wanted: readonly Slot[]) => {
    const expected = wanted.map(({ name }) => name).sort();
    while ((await serving(statusPort)).join() !== expected.join()) await setTimeout(100);
  };
  return { port, untilServing, stop: () => program.stop() };
}

/** Names of the servers that are up, sorted. */
async function serving(statusPort: number): Promise<string[]> {
  const csv = await (await fetch(`http://127.0.0.1:${statusPort}/;csv`)).text();
  const [head = '', ...lines] = csv.trim().split('\n');
  const columns = head.replace(/^# /, '').split(',');
  const [proxy, server, status] = ['pxname', 'svname', 'status'].map((name) => columns.indexOf(name));
  return lines
    .map((line) => line.split(','))
    .filter((fields) => fields[proxy ?? 0] === 'replicas' && fields[server ?? 0] !== 'BACKEND')
    .filter((fields) => /^UP/.test(fields[status ?? 0] ?? ''))
    .map((fields) => fields[server ?? 0] ?? '')
    .sort();
}
