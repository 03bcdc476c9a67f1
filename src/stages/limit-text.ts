import { bucketNamed, type ScopeName } from '../domain/buckets.ts';
import type { PlannedBucket } from './buckets.ts';

/** A caller may know the Account, the Person and the address, but has not named the Organization. */
const OWNERS: Readonly<Record<ScopeName, (owner: string) => string>> = {
  account: (owner) => `Account ${owner}`,
  person: (owner) => `Person ${owner}`,
  address: (owner) => `Address ${owner}`,
  organization: () => 'The Organization',
};

const UNITS = [
  { seconds: 86_400, name: 'day' },
  { seconds: 3_600, name: 'hour' },
  { seconds: 60, name: 'minute' },
  { seconds: 1, name: 'second' },
] as const;

/** Why this bucket refuses a request of `cost` points, and when it fits. */
export function limitText(
  bucket: PlannedBucket,
  remaining: number,
  cost: number,
  waitSeconds: number,
): string {
  const { scopeName, kind } = bucketNamed(bucket.name);
  const owner = OWNERS[scopeName](bucket.owner);
  const points = bucket.limit === 1 ? '1 point' : `${bucket.limit.toLocaleString('en')} points`;
  const limit = `${points} ${windowText(bucket.windowSeconds)} for ${kind}s`;
  const wait = waitText(waitSeconds);
  return remaining === 0
    ? `${owner} has used its ${limit}; the next fit in ${wait}.`
    : `${owner} has ${remaining.toLocaleString('en')} left of its ${limit}, and this request costs ${cost}; it fits in ${wait}.`;
}

/** Such as `per minute` or `in 5 minutes`. */
function windowText(seconds: number): string {
  const unit = UNITS.find((one) => seconds % one.seconds === 0) ?? UNITS[3];
  const count = seconds / unit.seconds;
  return count === 1 ? `per ${unit.name}` : `in ${count} ${unit.name}s`;
}

/** Rounded up to a unit of which there are two or more: `90 s`, `5 minutes`, `36 hours`. */
function waitText(seconds: number): string {
  const unit = UNITS.find((one) => seconds > 2 * one.seconds) ?? UNITS[3];
  return unit.name === 'second' ? `${seconds} s` : `${Math.ceil(seconds / unit.seconds)} ${unit.name}s`;
}
