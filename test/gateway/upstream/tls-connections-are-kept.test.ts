import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { Pool } from '../../../src/http/client/pool.ts';
import { makeCertificate } from '../../fixtures/certificate.ts';
import { call } from '../../fixtures/upstream-call.ts';

const LIMITS = {
  connections: 8,
  connectTimeoutMs: 20_000,
  headersTimeoutMs: 20_000,
  bodyTimeoutMs: 20_000,
  keepAliveTimeoutMs: 20_000,
};

/** In a process of its own, whose response can arrive before this process learns that its request was written. */
it('requests of all kinds in turn share a connection to a TLS upstream in another process', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-tls-kept-'));
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  makeCertificate(certFile, keyFile);
  const program = new URL('../../fixtures/tls-upstream-process.ts', import.meta.url);
  const upstream = fork(program, [certFile, keyFile], { execArgv: ['--import', 'tsx'] });
  const [port] = (await once(upstream, 'message')) as [number];
  const pool = new Pool(new URL(`https://127.0.0.1:${port}`), LIMITS, {
    verify: true,
    ca: readFileSync(certFile),
  });
  try {
    let connectionCount = 0;
    for (let count = 0; count < 100; count++) {
      const buffered = { method: 'POST', body: Buffer.alloc(2_000) };
      const streamed = { method: 'POST', body: Readable.from([Buffer.alloc(2_000), Buffer.alloc(2_000)]) };
      for (const request of [{}, buffered, streamed])
        connectionCount = Number((await call(pool, request)).body);
    }
    // A few: a machine that is very slow may take one for lost.
    expect(connectionCount).toBeLessThan(10);
  } finally {
    pool.destroy();
    upstream.disconnect();
    rmSync(folder, { recursive: true });
  }
});
