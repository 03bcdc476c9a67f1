import { hash, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { isKeyPair, type ServerCertificates } from '../../domain/tls-files.ts';
import { fileError } from '../problem.ts';
import { readText } from '../reader/read-text.ts';

/** The settings `listen.tls`, `admin.tls` or `decisions.tls`. */
export interface ServerTlsSettings {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile?: string | undefined;
}

/** The certificate, key and client authority of one port. */
export class CertificateFiles {
  readonly #settings: ServerTlsSettings;
  readonly #path: string;
  #last: { readonly digest: string; readonly value: ServerCertificates } | undefined;

  /** @param path of the settings, such as `listen.tls` */
  constructor(settings: ServerTlsSettings, path: string) {
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
    if (!isUsable(cert, key))
      throw fileError(keyFile, `is not the PEM private key of the certificate in ${certFile}`);
  }
}

function isUsable(cert: string, key: string): boolean {
  try {
    createSecureContext({ cert, key });
    return isKeyPair(cert, key);
  } catch {
    return false;
  }
}

/** Refuses authorities that a server could not use. */
function refuseUnreadable(clientCa: string, file: string): void {
  certificateIn(clientCa, file);
  try {
    createSecureContext({ ca: clientCa });
  } catch {
    throw fileError(file, 'has a certificate that cannot be read');
  }
}

/** The first certificate of a PEM file. */
function certificateIn(text: string, file: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw fileError(file, 'is not a certificate in PEM');
  }
}
