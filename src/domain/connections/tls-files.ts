import { createPrivateKey, sign, verify, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** How a TLS connection is verified and authenticated; files hold PEM. */
export interface TlsFiles {
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly serverName?: string | undefined;
}

/** A server's certificate and key, in PEM. */
export interface ServerCertificates {
  readonly cert: string;
  readonly key: string;
  /** The authorities of client certificates; undefined if clients need none. */
  readonly clientCa: string | undefined;
}

/** Options of `node:tls`, with PEM. */
export interface ClientTls {
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  readonly servername?: string | undefined;
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

/** Any text: only its signature matters. */
const TEXT = Buffer.from('a certificate and its key');

/**
 * Whether a private key belongs to the first of these certificates, both in PEM: what the key signs, the certificate verifies. OpenSSL
 * compares them only if both are of one type.
 *
 * @throws Error if one of them cannot be read
 */
export function isKeyPair(cert: string | Buffer, key: string | Buffer): boolean {
  const { publicKey } = new X509Certificate(cert);
  const privateKey = createPrivateKey(key);
  return (
    publicKey.asymmetricKeyType === privateKey.asymmetricKeyType &&
    verify(null, TEXT, publicKey, sign(null, TEXT, privateKey))
  );
}
