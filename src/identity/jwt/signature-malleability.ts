/**
 * Alternative encodings of a token that are equally valid. A revocation identifies a token by its digest, so another encoding
 * would bypass it. The signature covers the exact bytes of header and claims. That leaves the encoding of the signature itself,
 * the second valid signature that every ECDSA signature has, and zeros at the front of an RSA signature.
 */
import type { CryptoKey, KeyObject } from 'jose';

/** The order of each curve. If (r, s) is a valid signature, so is (r, order - s). */
const ORDERS: Readonly<Record<string, bigint>> = {
  ES256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  ES384: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  ES512:
    0x01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409n,
  ES256K: 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n,
};

/** The order of edwards25519. RFC 8032 section 5.1.7 refuses a larger second half, which lenient verifiers reduce. */
const ED25519_ORDER = 0x1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3edn;
const ED25519_BYTES = 64;

/** The length of every RSA key is a multiple of this in practice. */
const RSA_STEP_BYTES = 8;

/** Whether a token is signed, in the form of RFC 7515: three parts, where the first is a header that names its algorithm. */
export function isSigned(token: string): boolean {
  return token.split('.', 4).length === 3 && algorithmOf(token) !== '';
}

/** Whether the signature is encoded as RFC 7515 requires, base64url without padding and without unused bits, and is not too large. */
export function isCanonical(token: string): boolean {
  const text = token.slice(token.lastIndexOf('.') + 1);
  const signature = Buffer.from(text, 'base64url');
  if (signature.toString('base64url') !== text) return false;
  if (signature.length !== ED25519_BYTES || !/^Ed(DSA|25519)$/.test(algorithmOf(token))) return true;
  return numberOf(signature.subarray(ED25519_BYTES / 2).reverse()) < ED25519_ORDER;
}

/**
 * The token with the other valid signature: of ECDSA the second one, of RSA the one with, or without, the zeros at its front.
 * Undefined if there is none.
 */
export function twinOf(token: string): string | undefined {
  const end = token.lastIndexOf('.');
  const algorithm = algorithmOf(token);
  const signature = Buffer.from(token.slice(end + 1), 'base64url');
  const twin = /^[RP]S\d/.test(algorithm) ? rsaTwin(signature) : ecdsaTwin(signature, ORDERS[algorithm]);
  return twin && `${token.slice(0, end)}.${twin.toString('base64url')}`;
}

/** RFC 8017 section 8: an RSA signature is as long as the modulus. OpenSSL accepts a PSS signature without its leading zeros. */
export function isAsLongAsModulus(key: CryptoKey | KeyObject, signature: string): boolean {
  const bits = 'algorithm' in key ? modulusBits(key.algorithm) : undefined;
  return bits === undefined || Buffer.from(signature, 'base64url').length === Math.ceil(bits / 8);
}

function modulusBits(algorithm: object): number | undefined {
  return 'modulusLength' in algorithm ? Number(algorithm.modulusLength) : undefined;
}

function ecdsaTwin(signature: Buffer, order: bigint | undefined): Buffer | undefined {
  const half = signature.length / 2;
  if (order === undefined || half === 0 || !Number.isInteger(half)) return undefined;
  const s = numberOf(signature.subarray(half));
  if (s >= order) return undefined;
  const twin = Buffer.from(signature);
  twin.write((order - s).toString(16).padStart(half * 2, '0'), half, 'hex');
  return twin;
}

function rsaTwin(signature: Buffer): Buffer | undefined {
  const missing = -signature.length & (RSA_STEP_BYTES - 1);
  if (missing > 0) return Buffer.concat([Buffer.alloc(missing), signature]);
  const zeros = signature.findIndex((octet) => octet !== 0);
  return zeros > 0 ? signature.subarray(zeros) : undefined;
}

function numberOf(bigEndian: Buffer): bigint {
  return BigInt(`0x${bigEndian.toString('hex')}`);
}

function algorithmOf(token: string): string {
  try {
    const header = JSON.parse(Buffer.from(token.split('.', 1)[0] ?? '', 'base64url').toString());
    return typeof header?.alg === 'string' ? header.alg : '';
  } catch {
    return '';
  }
}
