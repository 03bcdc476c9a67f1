/**
 * Alternative encodings of a token that are equally valid. A revocation identifies a token by its digest, so another encoding
 * would bypass it. The signature covers the exact bytes of header and claims. That leaves the encoding of the signature
 * itself, and the second valid signature that every ECDSA signature has.
 */
/** The order of each curve. If (r, s) is a valid signature, so is (r, order - s). */
const ORDERS: Readonly<Record<string, bigint>> = {
  ES256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  ES384: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  ES512:
    0x01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409n,
};

/** Whether the signature is encoded as RFC 7515 requires: base64url without padding and without unused bits. */
export function isCanonical(token: string): boolean {
  const signature = token.slice(token.lastIndexOf('.') + 1);
  return Buffer.from(signature, 'base64url').toString('base64url') === signature;
}

/** The token with the other valid ECDSA signature; undefined for other algorithms. */
export function twinOf(token: string): string | undefined {
  const end = token.lastIndexOf('.');
  const order = ORDERS[algorithmOf(token)];
  const signature = Buffer.from(token.slice(end + 1), 'base64url');
  const half = signature.length / 2;
  if (order === undefined || half === 0 || !Number.isInteger(half)) return undefined;
  const s = BigInt(`0x${signature.toString('hex', half)}`);
  if (s >= order) return undefined;
  signature.write((order - s).toString(16).padStart(half * 2, '0'), half, 'hex');
  return `${token.slice(0, end)}.${signature.toString('base64url')}`;
}

function algorithmOf(token: string): string {
  try {
    const header = JSON.parse(Buffer.from(token.split('.', 1)[0] ?? '', 'base64url').toString());
    return String(header?.alg);
  } catch {
    return '';
  }
}
