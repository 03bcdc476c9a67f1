import { readFileSync } from 'node:fs';
import { isKeyPair } from './key-pair.ts';

/** How a TLS connection is verified and authenticated; files hold PEM. */
export interface TlsFiles {
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly serverName?: string | undefined;
}

/** The options of `node:tls` for these files. Throws where one cannot be read, or where key and certificate do not belong together. */
export function tlsOptions({ caFile, certFile, keyFile, serverName }: TlsFiles = {}) {
  return {
    ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
    ...clientPair(certFile, keyFile),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}

function clientPair(certFile: string | undefined, keyFile: string | undefined) {
  if (certFile === undefined && keyFile === undefined) return {};
  if (certFile === undefined || keyFile === undefined)
    throw new Error('certFile and keyFile must be set together');
  const pair = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  if (isKeyPair(pair.cert, pair.key)) return pair;
  throw new Error(`${keyFile} is not the private key of the certificate in ${certFile}`);
}
