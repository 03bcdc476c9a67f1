/** Number of characters of a body that the delivery log keeps. */
const LONGEST = 2048;

const MASK = '[redacted]';

/** A JSON member or form parameter whose name suggests a secret, with its value. */
const NAMED =
  /("?[\w-]*(?:password|passwd|secret|token|authorization|api[_-]?key|cookie|signature)[\w-]*"?\s*[:=]\s*)(?!\[redacted)("(?:[^"\\]|\\.)*"?|[^\s,;&}\]]+)/gi;
/** Values that look like secrets: bearer tokens, JWTs, the platform's keys and webhook secrets. */
const SHAPED = /\b(?:Bearer\s+[\w.~+/-]+=*|eyJ[\w-]+\.[\w-]+\.[\w-]*|wk_[\w-]{8,}|whsec_[\w+/=]{8,})/g;

/** The beginning of a body for the delivery log, with everything that looks like a secret removed. */
export function redactedBody(text: string): string {
  // Redact before cutting: half a secret would not be recognised.
  const redacted = text
    .replaceAll('\0', '')
    .replaceAll(SHAPED, MASK)
    .replaceAll(
      NAMED,
      (_all, name: string, value: string) => name + (value.startsWith('"') ? `"${MASK}"` : MASK),
    );
  return redacted.length > LONGEST ? `${redacted.slice(0, LONGEST)}…` : redacted;
}
