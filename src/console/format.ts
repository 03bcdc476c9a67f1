import type { ReplicaSlots } from '../admin/usage/slots-by-replica.ts';
import { roundedDuration } from '../domain/duration.ts';
import { type ScopeName, scopeNamed } from '../domain/limits/scopes.ts';
import { shownCount } from '../domain/shown.ts';

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** A number of at most five characters, such as `0.4`, `312` or `12.3K`. */
export function short(value: number): string {
  if (value > 0 && value < 0.1) return '<0.1';
  if (value > 0 && value < 10) return value.toFixed(1).replace(/\.0$/, '');
  return value < 10_000 ? shownCount(value) : compact.format(value);
}

/** `0 %`, `0.4 %`, `12 %`. What is more than nothing is never shown as 0. */
export function percent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.1) return '<0.1 %';
  return `${value > 0 && value < 10 ? value.toFixed(1).replace(/\.0$/, '') : Math.round(value)} %`;
}

/** `0.4 ms`, `12 ms`, `1.2 s`. */
export function milliseconds(value: number | null): string {
  if (value === null) return '–';
  if (value >= 1_000) return `${(value / 1_000).toFixed(1)} s`;
  return `${value < 10 ? value.toFixed(1).replace(/\.0$/, '') : Math.round(value)} ms`;
}

/** What a limit is of: `points`, `requests at a time`. */
export function unitOf(counts: 'points' | 'requests' | 'concurrent'): string {
  return counts === 'concurrent' ? 'requests at a time' : counts;
}

/** `14:03:07` on the clock of the reader. */
export function clock(atMs: number): string {
  return new Date(atMs).toLocaleTimeString('en-GB');
}

/** `21 Nov 14:03` on the clock of the reader. */
export function moment(at: string): string {
  return new Date(at).toLocaleString('en-GB', {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  });
}

/** `45 s`, `12 min`, `3 h`, `2 days`. */
export function duration(ms: number): string {
  return roundedDuration(Math.max(0, Math.round(ms / 1_000)));
}

/** An id of at most `length` characters: the middle of a longer one is left out, because ids differ at their ends. */
export function shortened(id: string, length: number): string {
  if (id.length <= length) return id;
  const behind = Math.floor((length - 1) / 2);
  return `${id.slice(0, length - 1 - behind)}…${id.slice(-behind)}`;
}

/** That an owner is unknown where nobody lists them all. Replicas do not share which principals they have seen. */
export function unseenText(scope: ScopeName): string {
  const where = scopeNamed(scope).isPerPrincipal ? ' at this replica' : '';
  return `This ${scope} is unknown: no request of it was seen${where} in the last ten minutes, and this gateway cannot list every ${scope}.`;
}

/** `3 in flight (weir-0: 2, weir-1: 1)`. */
export function inFlightText(used: number, byReplica: readonly ReplicaSlots[]): string {
  const shares = byReplica.map(
    ({ replica, name, inFlight }) => `${name ?? replica}: ${shownCount(inFlight)}`,
  );
  return `${shownCount(used)} in flight${shares.length === 0 ? '' : ` (${shares.join(', ')})`}`;
}
