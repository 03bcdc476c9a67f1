import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startNginx } from '../contestants/nginx.ts';
import { findProgram } from '../lab/machine.ts';
import { freePort, type Program, startProgram } from '../lab/program.ts';

/** An empty page of the contract's list response (2.4), padded to the size of a small answer. */
const BODY = JSON.stringify({
  data: [{ id: 'payee_1', status: 'Activated', externalId: 'x'.repeat(120) }],
  pagination: { nextPageToken: '', totalSize: 1 },
});

export interface Service {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

/** The service behind all contestants: nginx with one fixed answer, so that it is never what is measured. */
export async function startUpstream(parent: string, cores: string | undefined): Promise<Service> {
  const folder = join(parent, 'upstream');
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const location = `default_type application/json; return 200 '${BODY}';`;
  return service(await startNginx({ folder, port, cores, http: '', location }), port);
}

/** A Redis without persistence, shared by all contestants that count in Redis. */
export async function startRedis(cores: string | undefined, wantedPort?: number): Promise<Service> {
  const port = wantedPort ?? (await freePort());
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const command = findProgram('redis-server') ?? 'redis-server';
  return service(await startProgram({ command, args, cores, port }), port);
}

function service(program: Program, port: number): Service {
  return { port, pid: program.pid, stop: () => program.stop() };
}
