/** As much of a body as the delivery log keeps, in characters. */
const LONGEST = 2048;

const MASK = '[redacted]';

/** A member or parameter whose name speaks of a secret, in JSON or in a form, with its value. */
const NAMED =
  /("?[\w-]*(?:password|passwd|secret|token|authorization|api[_-]?key|cookie|signature)[\w-]*"?\s*[:=]\s*)(?!\[redacted)("(?:[^"\\]|\\.)*"?|[^\s,;&}\]]+)/gi;
/** Values that are secrets by their own form: bearer tokens, JWTs, the platform's keys and webhook secrets. */
const SHAPED = /\b(?:Bearer\s+[\w.~+/-]+=*|eyJ[\w-]+\.[\w-]+\.[\w-]*|wk_[\w-]{8,}|whsec_[\w+/=]{8,})/g;

/** The beginning of a body as the delivery log shows it: without what looks like a secret. */
export function redactedBody(text: string): string {
  // Redacted before it is cut: half a secret would not be recognised.
  const redacted = text
    .replaceAll('\0', '')
    .replaceAll(SHAPED, MASK)
    .replaceAll(
      NAMED,
      (_all, name: string, value: string) => name + (value.startsWith('"') ? `"${MASK}"` : MASK),
    );
  return redacted.length > LONGEST ? `${redacted.slice(0, LONGEST)}…` : redacted;
}
