import { readFileSync } from 'node:fs';

/** How a TLS connection is verified and authenticated; files hold PEM. */
export interface TlsFiles {
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly serverName?: string | undefined;
}

/** The options of `node:tls` for these files. Throws where one cannot be read. */
export function tlsOptions({ caFile, certFile, keyFile, serverName }: TlsFiles = {}) {
  return {
    ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
    ...(certFile === undefined ? {} : { cert: readFileSync(certFile) }),
    ...(keyFile === undefined ? {} : { key: readFileSync(keyFile) }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}
