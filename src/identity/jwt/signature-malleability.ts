/**
 * Whether a token can be written in another way that proves the same. A revocation names a token by its digest, so each
 * other way of writing it would be a way around the revocation. The signature covers header and claims as they are
 * written; what is left is how the signature itself is written, and that ECDSA signatures come in pairs.
 */
/** The order of each curve: of (r, s) and (r, order - s), both verify. */
const ORDERS: Readonly<Record<string, bigint>> = {
  ES256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  ES384: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  ES512:
    0x01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409n,
};

/** Whether the signature is written as RFC 7515 wants it: base64url, no padding, no bits that say nothing. */
export function isCanonical(token: string): boolean {
  const signature = token.slice(token.lastIndexOf('.') + 1);
  return Buffer.from(signature, 'base64url').toString('base64url') === signature;
}

/** The one other token that proves the same, for an ECDSA signature; undefined for all others. */
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
