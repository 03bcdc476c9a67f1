/** Durations, as files and requests write them (`90s`, `2h`, `30d`) and as messages show them (`90 s`, `2 h`, `30 days`). */

const SECOND = { name: 'second', short: 's', seconds: 1 };

/** The longest first. The first letter of a name is the unit in files and requests. */
const UNITS = [
  { name: 'day', short: 'day', seconds: 86_400 },
  { name: 'hour', short: 'h', seconds: 3_600 },
  { name: 'minute', short: 'min', seconds: 60 },
  SECOND,
];

/** The seconds of a text such as `90s` or `30d`. Undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  const [, count, letter = ''] = /^(\d{1,7})([smhd])$/.exec(text) ?? [];
  const unit = UNITS.find(({ name }) => name.startsWith(letter));
  return count === undefined || unit === undefined ? undefined : Number(count) * unit.seconds;
}

/** The duration as files write it, in the longest unit that divides it: `90s`, `30d`. */
export function writtenDuration(seconds: number): string {
  const unit = exactUnit(seconds);
  return `${seconds / unit.seconds}${unit.name.charAt(0)}`;
}

/** The duration in the longest unit that divides it: `90 s`, `1 min`, `36 h`, `30 days`. */
export function exactDuration(seconds: number): string {
  const unit = exactUnit(seconds);
  return inUnit(seconds / unit.seconds, unit.short);
}

/** The duration in the longest unit that it has at least two of: `90 s`, `3 min`, `36 h`, `2 days`. Seconds are never rounded. */
export function roundedDuration(seconds: number, round: (count: number) => number = Math.round): string {
  const unit = UNITS.find((one) => seconds >= 2 * one.seconds) ?? SECOND;
  return inUnit(unit === SECOND ? seconds : round(seconds / unit.seconds), unit.short);
}

/** A window after an amount: `per minute`, `in 5 min`. */
export function windowText(seconds: number): string {
  const unit = exactUnit(seconds);
  return seconds === unit.seconds ? `per ${unit.name}` : `in ${exactDuration(seconds)}`;
}

/** The time of a limit after its amount: `per minute`, `in 5 min`, `per month`. */
export function limitTimeText({ windowSeconds, period }: LimitTime): string {
  return period === undefined ? windowText(windowSeconds) : `per ${period.unit}`;
}

/** The time of a limit after `per`: `minute`, `5 min`, `month`. */
export function limitTimeName({ windowSeconds, period }: LimitTime): string {
  if (period !== undefined) return period.unit;
  const unit = exactUnit(windowSeconds);
  return windowSeconds === unit.seconds ? unit.name : exactDuration(windowSeconds);
}

interface LimitTime {
  readonly windowSeconds: number;
  readonly period?: { readonly unit: string } | undefined;
}

function exactUnit(seconds: number) {
  return UNITS.find((one) => seconds >= one.seconds && seconds % one.seconds === 0) ?? SECOND;
}

function inUnit(count: number, short: string): string {
  return `${count} ${short}${short === 'day' && count !== 1 ? 's' : ''}`;
}
