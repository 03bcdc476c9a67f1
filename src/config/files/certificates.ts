import { hash, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import {
  type ClientTls,
  isKeyPair,
  type ServerCertificates,
  type TlsFiles,
} from '../../domain/connections/tls-files.ts';
import { ConfigError, fileError, formatPath, type Problem } from '../problem.ts';
import { readText } from '../reader/read-text.ts';
import type { Finding } from '../reader/schema-check.ts';
import type { Settings } from '../settings/settings.ts';

/** The certificate, key and client authority of one port. */
export class CertificateFiles {
  readonly #settings;
  readonly #path: string;
  #last: { readonly digest: string; readonly value: ServerCertificates } | undefined;

  /** @param path of the settings, such as `listen.tls` */
  constructor(settings: NonNullable<Settings['listen']['tls']>, path: string) {
    this.#settings = settings;
    this.#path = path;
  }

  files(): readonly string[] {
    const { certFile, keyFile, clientCaFile } = this.#settings;
    return clientCaFile === undefined ? [certFile, keyFile] : [certFile, keyFile, clientCaFile];
  }

  /**
   * Returns the same object as before if no file has changed. Throws a ConfigError if a file cannot be read, if key and certificate
   * do not belong together, or if the certificate has expired.
   */
  read(): ServerCertificates {
    const { certFile, keyFile, clientCaFile } = this.#settings;
    const read = (file: string, name: string) =>
      readText(file, `the setting ${this.#path}.${name} refers to it`);
    const cert = read(certFile, 'certFile');
    const key = read(keyFile, 'keyFile');
    const clientCa = clientCaFile === undefined ? undefined : read(clientCaFile, 'clientCaFile');
    const digest = hash('sha256', JSON.stringify([cert, key, clientCa]));
    if (this.#last?.digest !== digest) {
      this.#refuseUnusable(cert, key);
      if (clientCa !== undefined) refuseUnreadable(clientCa, clientCaFile ?? '');
      this.#last = { digest, value: { cert, key, clientCa } };
    }
    return this.#last.value;
  }

  #refuseUnusable(cert: string, key: string): void {
    const { certFile, keyFile } = this.#settings;
    const { validTo } = certificateIn(cert, certFile);
    if (Date.parse(validTo) <= Date.now()) throw fileError(certFile, `expired on ${validTo}`);
    if (ENCRYPTED_KEY.test(key))
      throw fileError(keyFile, 'is encrypted with a passphrase, which Weir does not have', DECRYPT_HINT);
    if (!isPair(cert, key))
      throw fileError(keyFile, `is not the PEM private key of the certificate in ${certFile}`);
    if (!isUsable({ cert, key })) throw fileError(certFile, 'has a certificate that TLS cannot use');
  }
}

/** What one upstream's TLS is made of. */
export class UpstreamCertificateFiles {
  readonly #tls: TlsFiles;
  readonly #path: readonly string[];
  #last: { readonly digest: string; readonly value: ClientTls } | undefined;

  /** @param path of the settings, such as `upstream.tls` */
  constructor(tls: TlsFiles, path: readonly string[]) {
    this.#tls = tls;
    this.#path = path;
  }

  files(): readonly string[] {
    const { caFile, certFile, keyFile } = this.#tls;
    return [caFile, certFile, keyFile].filter((file) => file !== undefined);
  }

  /** Returns the same object as before if no file has changed. Throws a ConfigError if a file cannot be used. */
  read(): ClientTls {
    const pem = readPem(this.#tls, this.#path);
    const digest = hash('sha256', JSON.stringify(pem));
    if (this.#last?.digest !== digest) {
      const finding = findingIn(pem, this.#tls, this.#path);
      if (finding !== undefined) {
        const { message, hint } = finding;
        throw new ConfigError([{ source: formatPath(this.#path), path: '', message, hint }]);
      }
      this.#last = { digest, value: { ...pem, servername: this.#tls.serverName } };
    }
    return this.#last.value;
  }
}

/** PKCS #8, and the older form of each type of key. */
const ENCRYPTED_KEY = /^(?:-----BEGIN ENCRYPTED |Proc-Type: 4,ENCRYPTED)/m;
const DECRYPT_HINT = 'write it without one, for example with openssl pkey -in KEY -out NEW';

function isPair(cert: string, key: string): boolean {
  try {
    return isKeyPair(cert, key);
  } catch {
    return false;
  }
}

/** Whether TLS takes them: also the certificates that follow the first one. */
function isUsable(pem: SecureContextOptions): boolean {
  try {
    createSecureContext(pem);
    return true;
  } catch {
    return false;
  }
}

/** Refuses authorities that a server could not use. */
function refuseUnreadable(clientCa: string, file: string): void {
  certificateIn(clientCa, file);
  if (!isUsable({ ca: clientCa })) throw fileError(file, 'has a certificate that cannot be read');
}

/** The first certificate of a PEM file. */
function certificateIn(text: string | Buffer, file: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw fileError(file, 'is not a certificate in PEM');
  }
}

const PAIR_HINT = 'keyFile must be the private key of the certificate in certFile; set both or neither';

/**
 * Checks what the schema of `upstream` and `store` cannot: certificates.
 *
 * @param place adds file and line to a finding
 * @throws ConfigError with every problem
 */
export function checkProxySettings(
  { upstream, store }: Partial<Settings>,
  place: (finding: Finding) => Problem,
): void {
  const problems: Problem[] = [];
  problems.push(...tlsProblems(upstream?.tls, ['upstream', 'tls'], place));
  if (store !== undefined && 'tls' in store)
    problems.push(...tlsProblems(store.tls, ['store', 'tls'], place));
  for (const [index, { tls }] of upstream?.routes.entries() ?? []) {
    problems.push(...tlsProblems(tls, ['upstream', 'routes', `${index}`, 'tls'], place));
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

function tlsProblems(
  tls: TlsFiles | undefined,
  path: readonly string[],
  place: (finding: Finding) => Problem,
): readonly Problem[] {
  if (tls === undefined) return [];
  try {
    const finding = findingIn(readPem(tls, path), tls, path);
    return finding === undefined ? [] : [place(finding)];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** @throws ConfigError for a file that cannot be read */
function readPem({ caFile, certFile, keyFile }: TlsFiles, path: readonly string[]) {
  const read = (file: string | undefined, name: string) =>
    file === undefined ? undefined : readText(file, `the setting ${path.join('.')}.${name} refers to it`);
  return { ca: read(caFile, 'caFile'), cert: read(certFile, 'certFile'), key: read(keyFile, 'keyFile') };
}

/**
 * Why these cannot be used.
 *
 * @throws ConfigError for an authority that is not a certificate
 */
function findingIn({ ca, cert, key }: ClientTls, { caFile = '' }: TlsFiles, path: readonly string[]) {
  if (ca !== undefined) certificateIn(ca, caFile);
  try {
    createSecureContext({ ca, cert, key });
    if (cert === undefined && key === undefined) return undefined;
    if (cert !== undefined && key !== undefined && isKeyPair(cert, key)) return undefined;
    return { path, message: 'has no pair of certFile and keyFile', hint: PAIR_HINT };
  } catch {
    const hint = 'caFile, certFile and keyFile must be PEM files, and certFile and keyFile a pair';
    return { path, message: 'cannot be used for TLS', hint };
  }
}
