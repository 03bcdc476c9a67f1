import { createHash } from 'node:crypto';

/**
 * The whole key of one bucket: `<prefix>:1:{<tag>}:<bucket>:<id>`. The `1` is the version of the value's format.
 *
 * `tag` is the Organization of the charged Account, or the Account if it has none. Redis Cluster hashes the text between the
 * first braces, so all buckets of one charge are in one slot. Tag and id are escaped: no id can
 * move a key to another slot, and no two ids share a key. The prefix has no braces (the settings refuse them).
 */
export function bucketKey(prefix: string, tag: string, bucket: string, id: string): string {
  return `${prefix}:1:{${escapeId(tag)}}:${bucket}:${escapeId(id)}`;
}

/** The key that marks a settlement as applied, in the Cluster slot of the buckets of its charge. */
export function settledKey(bucketKey: string, id: string): string {
  return `${bucketKey.slice(0, bucketKey.indexOf('}:') + 2)}.settled:${id}`;
}

/** Ends the name of a bucket that counts concurrent requests: if a limit comes to count something else, its values differ. */
export const SLOTS_ENDING = '.slots';

/** Ends the name of a bucket that counts in periods of the calendar, for the same reason. */
export const PERIOD_ENDING = '.p';

/** The bucket's name in a key of `bucketKey`; empty in any other key. */
export function bucketOf(key: string): string {
  const start = key.indexOf('}:') + 2;
  return start < 2 ? '' : key.slice(start, key.indexOf(':', start));
}

/**
 * The key of the replicas that are alive, for slots whose keys are in one Cluster slot.
 *
 * @param slotsKey one of these keys
 * @param tag a text in the same Cluster slot
 */
export function aliveKey(slotsKey: string, tag: string): string {
  return `${slotsKey.slice(0, slotsKey.indexOf(':1:{'))}:1:{${tag}}:alive`;
}

/**
 * The key that says whether the durable counts in its Cluster slot are complete.
 *
 * @param tag a text in this slot
 */
export function markKey(prefix: string, tag: string): string {
  return `${prefix}:1:{${tag}}:journal`;
}

/** A longer id is replaced by its digest, so that keys stay small for any token or header. */
const MAX_ESCAPED_LENGTH = 128;

const PLAIN_ID = /^[A-Za-z0-9._~-]{1,128}$/;

/**
 * Plain ids are unchanged; every other character becomes the percent-encoded bytes of its UTF-8 form. Three forms
 * that no plain id can take: `%` alone for the empty id (`{}` would hash the whole key), `%uD800` for half a
 * surrogate pair, which has no UTF-8 form, and `#` with a SHA-256 for an id longer than 128 characters when escaped.
 */
function escapeId(id: string): string {
  if (PLAIN_ID.test(id)) return id;
  if (id === '') return '%';
  const escaped = id.split(HALF_PAIR).map(escapePart).join('');
  if (escaped.length <= MAX_ESCAPED_LENGTH) return escaped;
  return `#${createHash('sha256').update(escaped).digest('hex')}`;
}

/** Splits an id: every second part is half a surrogate pair. */
const HALF_PAIR = /(\p{Surrogate})/u;

/** In native code: with one callback for each character, an id of 60 kB would block the process for a quarter of a second. */
function escapePart(part: string, index: number): string {
  if (index % 2 === 1) return `%u${part.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(part)
    .replaceAll('!', '%21')
    .replaceAll("'", '%27')
    .replaceAll('(', '%28')
    .replaceAll(')', '%29')
    .replaceAll('*', '%2A');
}
