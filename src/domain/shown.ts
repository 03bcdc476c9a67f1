/** Numbers and times formatted for people. */

/** `12,345`, rounded. `Intl` writes the same, but loading it takes 10 ms of each start. */
export function shownCount(count: number): string {
  let [rest, shown] = [count.toFixed(), ''];
  for (; /\d{4}$/.test(rest); rest = rest.slice(0, -3)) shown = `,${rest.slice(-3)}${shown}`;
  return rest + shown;
}

/** A share from 0 to 1 as a percentage, rounded to hundredths. Only 0 and 1 are shown as 0 % and 100 %. */
export function shownShare(share: number): string {
  if (share === 0) return '0 %';
  if (share < 0.0001) return '<0.01 %';
  if (share === 1) return '100 %';
  return `${Math.min(9_999, Math.round(share * 10_000)) / 100} %`;
}

/** A time in Unix milliseconds or ISO 8601, as `2026-11-21 14:00:00`; UTC. */
export function shownTime(at: number | string): string {
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}

/** What an error says. If no address of a name can be connected to, that is the error of the first: Node's own has no message. */
export function errorText(error: unknown): string {
  const first: unknown = error instanceof AggregateError && error.message === '' ? error.errors[0] : error;
  return first instanceof Error ? first.message : String(first);
}

/**
 * What to change where the error of a TLS connection says that the port does not speak TLS; undefined for other errors.
 *
 * @param change what may have to be otherwise
 */
export function noTlsText(
  message: string,
  change = 'its URL may have to begin with http:',
): string | undefined {
  // The first bytes that it sends are no TLS record.
  return message.includes('wrong version number') || message.includes('packet length too long')
    ? `it does not speak TLS, so ${change}`
    : undefined;
}

/** `1 replica`, `2 replicas`. */
export function counted(count: number, noun: string): string {
  return `${shownCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}
