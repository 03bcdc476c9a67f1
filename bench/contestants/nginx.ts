import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/fixtures/free-port.ts';
import { findProgram, versionOf } from '../lab/machine.ts';
import { type Program, startProgram } from '../lab/program.ts';
import { type Contestant, runningOf } from './contestant.ts';

/** nginx in front of the same upstream, with limit_req or without. */
export function nginx(limiter: 'none' | 'limit_req'): Contestant {
  const isLimiting = limiter === 'limit_req';
  return {
    name: isLimiting ? 'nginx limit_req' : 'nginx proxy_pass',
    limiter: isLimiting ? 'Account, leaky bucket, in shared memory' : 'none',
    hasLimiter: isLimiting,
    find: findNginx,
    async start({ cores, folder, limit, upstreamPort }) {
      const port = await freePort();
      const zone = `limit_req_zone $http_x_service_account zone=accounts:64m rate=${limit}r/s; limit_req_status 429;`;
      const program = await startNginx({
        folder,
        port,
        cores: cores?.gateway,
        http: `${isLimiting ? zone : ''} upstream platform { server 127.0.0.1:${upstreamPort}; keepalive 256; }`,
        location: `${isLimiting ? `limit_req zone=accounts burst=${limit} nodelay;` : ''}
          proxy_pass http://platform; proxy_http_version 1.1; proxy_set_header Connection "";`,
      });
      return runningOf(program, port);
    },
  };
}

export function findNginx(): { version: string } | { missing: string } {
  const program = findProgram('nginx');
  if (program === undefined) return { missing: 'no nginx on PATH (Debian: apt-get install nginx)' };
  return { version: `nginx ${versionOf(program, ['-v'], /nginx\/(\S+)/)}` };
}

export interface NginxOptions {
  readonly folder: string;
  readonly port: number;
  readonly cores: string | undefined;
  /** Lines of the `http` block. */
  readonly http: string;
  /** Further lines of the `server` block. */
  readonly server?: string;
  /** Lines of `location /`. */
  readonly location: string;
}

/** A worker of a process that runs as root would be `nobody`, and could not read the folder. */
const IS_ROOT = process.getuid?.() === 0;

/** One nginx worker with one location and no log. */
export async function startNginx(options: NginxOptions): Promise<Program> {
  const { folder, port, cores, http, server = '', location } = options;
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `${IS_ROOT ? 'user root; ' : ''}worker_processes 1; daemon off; pid ${folder}/nginx.pid; error_log stderr crit; worker_rlimit_nofile 20000;
events { worker_connections 18000; }
http {
  access_log off; keepalive_requests 100000000; keepalive_timeout 600;
  client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f;
  uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  ${http}
  server { listen 127.0.0.1:${port} backlog=16384; ${server} location / { ${location} } }
}
`,
  );
  return startProgram({
    command: findProgram('nginx') ?? 'nginx',
    args: ['-p', folder, '-c', file, '-e', 'stderr'],
    cores,
    port,
  });
}
