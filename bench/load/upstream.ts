import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate } from '../../test/fixtures/certificate.ts';
import { freePort } from '../../test/fixtures/free-port.ts';
import { startNginx } from '../contestants/nginx.ts';
import { findProgram } from '../lab/machine.ts';
import { type Program, startProgram } from '../lab/program.ts';

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

export interface Upstream extends Service {
  /** Its TLS port, with the same answers. */
  readonly tlsPort: number;
  /** What verifies its certificate. */
  readonly caFile: string;
}

/** Lengths of the bodies that the upstream serves at `bodyPath`. */
export const BODY_BYTES = [1_024, 65_536, 1_048_576] as const;

/** Where the upstream answers GET with a body of this length, one of BODY_BYTES. */
export function bodyPath(bytes: number): string {
  return `/bench/${bytes}`;
}

/** Where the upstream answers GET in chunks, because it does not know the length before it has looked for includes. */
export const CHUNKED_PATH = '/bench/chunked';

/** Where the upstream takes POSTs. `proxy_pass` makes nginx read the body before it answers; `return` alone would not. */
export const POST_PATH = '/bench/posts';

/** Where the upstream says that a GET has cost two points. */
export const COST_PATH = '/v3/soak/cost';

/** Where the answer to a GET takes about a second. */
export const SLOW_PATH = '/v3/soak/slow';

/** The service behind all contestants: nginx with fixed answers, so that it is never what is measured. */
export async function startUpstream(parent: string, cores: string | undefined): Promise<Upstream> {
  const folder = join(parent, 'upstream');
  mkdirSync(join(folder, 'www', 'bench'), { recursive: true });
  for (const bytes of BODY_BYTES)
    writeFileSync(join(folder, 'www', bodyPath(bytes)), Buffer.alloc(bytes, 'x'));
  const caFile = join(folder, 'certificate.pem');
  const keyFile = join(folder, 'key.pem');
  makeCertificate(caFile, keyFile);
  const port = await freePort();
  const tlsPort = await freePort();
  const program = await startNginx({
    folder,
    port,
    cores,
    http: 'client_body_buffer_size 1m;',
    server: `listen 127.0.0.1:${tlsPort} ssl; ssl_certificate ${caFile}; ssl_certificate_key ${keyFile};
      location /bench/ { root ${folder}/www; default_type application/octet-stream; }
      location = ${CHUNKED_PATH} { alias ${folder}/www${bodyPath(1_024)}; ssi on; ssi_types *; }
      location = ${POST_PATH} { proxy_pass http://127.0.0.1:${port}/taken; proxy_http_version 1.1; proxy_method GET;
        proxy_pass_request_body off; proxy_set_header Content-Length ''; }
      location = /taken { return 200 'taken'; }
      location = ${COST_PATH} { add_header X-Cost 2; return 200 'cost'; }
      location = ${SLOW_PATH} { alias ${folder}/www${bodyPath(65_536)}; limit_rate 65536; }`,
    location: `default_type application/json; return 200 '${BODY}';`,
  });
  return { ...service(program, port), tlsPort, caFile };
}

/** A Redis without persistence, shared by all contestants that count in Redis. */
export async function startRedis(cores: string | undefined, wantedPort?: number): Promise<Service> {
  const port = wantedPort ?? (await freePort());
  const noDump = [
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    tmpdir(),
    '--dbfilename',
    `weir-bench-${port}.rdb`,
  ];
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', ...noDump];
  const command = findProgram('redis-server') ?? 'redis-server';
  return service(await startProgram({ command, args, cores, port }), port);
}

function service(program: Program, port: number): Service {
  return { port, pid: program.pid, stop: () => program.stop() };
}
