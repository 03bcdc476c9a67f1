import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

/** Seals sort keys into page tokens that clients can neither read nor forge. */
export interface TokenSealer {
  /** A token for the list, filter and sort in `query`. `after` is the sort key of the last row on the page. */
  seal(after: readonly string[], query: string): string;
  /** What the token contains, or undefined if it is forged or of another query. */
  open(token: string, query: string): OpenedToken | undefined;
}

export interface OpenedToken {
  /** The sort key. */
  readonly after: readonly string[];
  readonly isExpired: boolean;
}

const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * AES-256-GCM with the query as additional data, so that a token cannot be opened with a different filter or sort
 * (contract section 4.1 rule 6). After its lifetime (rule 7) it is opened as expired. `key` has 32 bytes.
 */
export function createTokenSealer(key: Buffer, lifetimeSeconds: number, nowMs: () => number): TokenSealer {
  return {
    seal(after, query) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(digest(query));
      const text = cipher.update(JSON.stringify([nowMs() + lifetimeSeconds * 1000, after]), 'utf8');
      return Buffer.concat([iv, text, cipher.final(), cipher.getAuthTag()]).toString('base64url');
    },
    open(token, query) {
      const sealed = Buffer.from(token, 'base64url');
      if (sealed.length <= IV_BYTES + TAG_BYTES) return undefined;
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES))
        .setAAD(digest(query))
        .setAuthTag(sealed.subarray(-TAG_BYTES));
      try {
        const text = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES));
        const [expiresAtMs, after] = JSON.parse(Buffer.concat([text, decipher.final()]).toString('utf8'));
        return { after, isExpired: expiresAtMs <= nowMs() };
      } catch {
        return undefined;
      }
    },
  };
}

function digest(query: string): Buffer {
  return createHash('sha256').update(query).digest();
}
