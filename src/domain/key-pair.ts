import { createPrivateKey, sign, verify, X509Certificate } from 'node:crypto';

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
