import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/fixtures/free-port.ts';
import { findProgram, versionOf } from '../lab/machine.ts';
import { startProgram } from '../lab/program.ts';
import { type Contestant, type Running, runningOf, type Scene } from './contestant.ts';

/** HAProxy with a stick-table that counts each Account's requests of the last second. */
export const haproxy: Contestant = {
  name: 'HAProxy stick-table',
  limiter: 'Account, two-window estimate, in memory',
  hasLimiter: true,
  find: findHaproxy,
  start: (scene) =>
    startHaproxy(scene, 512, {
      frontend: `stick-table type string len 64 size 1m expire 10s store http_req_rate(1s)
  http-request track-sc0 req.hdr(x-service-account)
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt ${scene.limit} }`,
    }),
};

/** Starts HAProxy with at most so many requests at the upstream; further ones wait in one queue. Both parts may have lines of their own. */
export async function startHaproxy(
  { cores, folder, upstreamPort }: Scene,
  connections: number,
  { frontend = '', backend = '' }: { readonly frontend?: string; readonly backend?: string },
): Promise<Running> {
  const port = await freePort();
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(
    file,
    `global
  maxconn 12000
  no strict-limits
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 60s
  timeout http-keep-alive 600s
frontend clients
  bind 127.0.0.1:${port} backlog 16384
  ${frontend}
  default_backend platform
backend platform
  http-reuse always
  ${backend}
  server platform 127.0.0.1:${upstreamPort} maxconn ${connections}
`,
  );
  const program = await startProgram({
    command: findProgram('haproxy') ?? 'haproxy',
    args: ['-db', '-f', file],
    cores: cores?.gateway,
    port,
  });
  return runningOf(program, port);
}

export function findHaproxy(): { version: string } | { missing: string } {
  const program = findProgram('haproxy');
  if (program === undefined) return { missing: 'no haproxy on PATH (Debian: apt-get install haproxy)' };
  return { version: `HAProxy ${versionOf(program, ['-v'], /version (\d[\d.]*)/)}` };
}
