/**
 * Removes secrets from bodies that strangers send. A stranger chooses the text, so each expression here reads it once: none of
 * them can start again within the text that it has read in vain.
 */

/** Number of characters of a body that the delivery log keeps. */
const LONGEST = 2048;

/** The first half of a character that the cut divides. */
const HALF_AT_END = /[\ud800-\udbff]$/;
const HALF = /\p{Surrogate}/gu;

const MASK = '[redacted]';

/** Names of JSON members and form parameters, among other words. */
const WORD = /[\w-]+/g;
const SECRET_NAME = /password|passwd|secret|token|authorization|api[_-]?key|cookie|signature/i;
/** What separates a name from its value, and the value, unless it is masked already. */
const VALUE = /("?\s*[:=]\s*)(?!\[redacted)("(?:[^"\\]|\\.)*"?|[^\s,;&}\]]+)/y;

/** Values that look like secrets: bearer tokens, the platform's keys and webhook secrets. */
const SHAPED = /\b(?:Bearer\s+[\w.~+/-]+=*|wk_[\w-]{8,}|whsec_[\w+/=]{8,})/g;
/** Words joined by dots, or one of them alone. A JWT is three. */
const DOTTED = /\beyJ[\w-]+(?:\.[\w-]*)*/g;
const JWT_HEADER = /\beyJ[\w-]/;

/** The beginning of a body for the delivery log, with everything that looks like a secret removed. Takes linear time. */
export function redactedBody(text: string): string {
  // Redact before cutting: half a secret would not be recognised.
  const shaped = text.replaceAll('\0', '').replaceAll(SHAPED, MASK).replaceAll(DOTTED, withoutTokens);
  return storableText(withoutNamedValues(shaped));
}

/** The beginning of a text for the delivery log. It has only what PostgreSQL can store: no NUL, and no half of a surrogate pair. */
export function storableText(text: string): string {
  const shown = text.length > LONGEST ? `${text.slice(0, LONGEST).replace(HALF_AT_END, '')}…` : text;
  return shown.replaceAll('\0', '').replaceAll(HALF, '\ufffd');
}

function withoutTokens(dotted: string): string {
  const words = dotted.split('.');
  const kept: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    const start = word.search(JWT_HEADER);
    const isToken = start !== -1 && index + 2 < words.length && words[index + 1] !== '';
    kept.push(isToken ? word.slice(0, start) + MASK : word);
    if (isToken) index += 2;
  }
  return kept.join('.');
}

/** Masks the values of JSON members and form parameters whose names suggest a secret. */
function withoutNamedValues(text: string): string {
  let redacted = '';
  let copiedTo = 0;
  WORD.lastIndex = 0;
  for (let word = WORD.exec(text); word !== null; word = WORD.exec(text)) {
    if (!SECRET_NAME.test(word[0])) continue;
    VALUE.lastIndex = WORD.lastIndex;
    const [found, separator = '', value = ''] = VALUE.exec(text) ?? [];
    if (found === undefined) continue;
    redacted +=
      text.slice(copiedTo, WORD.lastIndex) + separator + (value.startsWith('"') ? `"${MASK}"` : MASK);
    copiedTo = WORD.lastIndex + found.length;
    WORD.lastIndex = copiedTo;
  }
  return redacted + text.slice(copiedTo);
}
