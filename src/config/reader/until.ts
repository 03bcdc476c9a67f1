const datePattern = /^\d{4}-\d{2}-\d{2}$/;
const DAY_MS = 86_400_000;

/**
 * When an override expires, in Unix milliseconds. A date without a time means the end of that day in UTC.
 * Undefined for a day that does not exist, such as 30 February.
 */
export function endOf(until: string): number | undefined {
  const day = until.slice(0, 10);
  const startMs = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(startMs) || new Date(startMs).toISOString().slice(0, 10) !== day) return undefined;
  if (datePattern.test(until)) return startMs + DAY_MS;
  const endMs = Date.parse(/(Z|[+-]\d{2}:\d{2})$/.test(until) ? until : `${until}Z`);
  return Number.isNaN(endMs) ? undefined : endMs;
}
